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
  suspend: ReturnType<typeof useAction<Row>>
  nameOf: (row: Row) => string
  /** Explains the effect of a suspension; can contain a form field. */
  words: ReactNode
  whyNot?: (row: Row) => string | undefined
  commandsOf: (row: Row) => Commands
}

/** Returns a column with a button that suspends (after a confirmation) or restores a user or organization. */
export const suspendColumn = <Row extends Suspendable>(suspension: Suspension<Row>): Column<Row> =>
  actionColumn('110px', (row) => <SuspendButton row={row} {...suspension} />)

function SuspendButton<Row extends Suspendable>({
  row,
  suspend,
  nameOf,
  words,
  whyNot,
  commandsOf,
}: Suspension<Row> & { row: Row }) {
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <Button
        size="small"
        reason={whyNot?.(row)}
        isBusy={suspend.isPending && suspend.variables?.id === row.id}
        onClick={() => (row.suspended ? suspend.mutate(row) : setAsking(true))}
      >
        {row.suspended ? 'Restore' : 'Suspend'}
      </Button>
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        title={`Suspend ${nameOf(row)}`}
        action="Suspend"
        commands={commandsOf(row)}
        {...submitProps(suspend, row, () => setAsking(false))}
      >
        {words}
      </Confirm>
    </>
  )
}
