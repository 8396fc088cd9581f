import { type ReactNode, useState } from 'react'
import type { useAction } from '../../api/actions.ts'
import type { Commands } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import type { Column } from '../../ui/table.tsx'

interface Suspendable {
  id: string
  suspended: boolean
}

interface Suspension<Row> {
  /** Suspends the row, or restores it if it is suspended. */
  setSuspended: ReturnType<typeof useAction<Row>>
  nameOf: (row: Row) => string
  /** Explains the effect of a suspension; can contain a form field. */
  explanation: ReactNode
  whyNot?: (row: Row) => string | undefined
  commandsOf: (row: Row) => Commands
}

/** Returns a column with a button that suspends (after a confirmation) or restores a user or organization. */
export const suspendColumn = <Row extends Suspendable>(suspension: Suspension<Row>): Column<Row> =>
  actionColumn('110px', (row) => <SuspendButton row={row} {...suspension} />)

function SuspendButton<Row extends Suspendable>({
  row,
  setSuspended,
  nameOf,
  explanation,
  whyNot,
  commandsOf,
}: Suspension<Row> & { row: Row }) {
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <Button
        size="small"
        reason={whyNot?.(row)}
        isBusy={setSuspended.isPending && setSuspended.variables?.id === row.id}
        onClick={() => (row.suspended ? setSuspended.mutate(row) : setAsking(true))}
      >
        {row.suspended ? 'Restore' : 'Suspend'}
      </Button>
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        title={`Suspend ${nameOf(row)}`}
        action="Suspend"
        commands={commandsOf(row)}
        {...submitProps(setSuspended, row, () => setAsking(false))}
      >
        {explanation}
      </Confirm>
    </>
  )
}
