import type { RouteId } from '@slipway/sdk'
import { type ReactNode, useState } from 'react'
import { useAction } from '../../api/actions.ts'
import type { Commands } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'
import type { Column } from '../../ui/table.tsx'

interface Suspendable {
  id: string
  suspended: boolean
}

interface Options<Row> {
  suspend: (row: Row) => Promise<unknown>
  restore: (row: Row) => Promise<unknown>
  nameOf: (row: Row) => string
  /** The text of the button that confirms, and the beginning of the title. */
  action: string
  /** Explains the effect of a suspension; can contain a form field. */
  explanationOf: (row: Row) => ReactNode
  whyNot?: (row: Row) => string | undefined
  commandsOf: (row: Row) => Commands
  invalidates: RouteId[]
}

interface Suspension<Row> {
  /** A button that suspends (after a confirmation) or restores a user or organization. */
  button: (row: Row, size?: 'small' | 'normal') => ReactNode
  /** The confirmation. The page shows it outside of its table, because rows are rebuilt when the window is resized. */
  dialog: ReactNode
}

export function useSuspension<Row extends Suspendable>(options: Options<Row>): Suspension<Row> {
  const { nameOf, invalidates, whyNot } = options
  const [asked, setAsked] = useState<Row | null>(null)
  const suspend = useAction({
    run: options.suspend,
    done: (row) => `Suspended ${nameOf(row)}`,
    invalidates,
    showsErrors: true,
  })
  const restore = useAction({
    run: options.restore,
    done: (row) => `Restored ${nameOf(row)}`,
    failed: (row) => `Could not restore ${nameOf(row)}`,
    invalidates,
  })
  const ask = (row: Row) => {
    // The error of an earlier attempt may be about another row.
    suspend.reset()
    setAsked(row)
  }
  return {
    button: (row, size = 'normal') => (
      <Button
        size={size}
        reason={whyNot?.(row)}
        isBusy={restore.isPending && restore.variables.id === row.id}
        onClick={() => (row.suspended ? restore.mutate(row) : ask(row))}
      >
        {row.suspended ? 'Restore' : 'Suspend'}
      </Button>
    ),
    dialog: asked && (
      <Confirm
        isOpen
        onClose={() => setAsked(null)}
        title={`${options.action} ${nameOf(asked)}`}
        action={options.action}
        commands={options.commandsOf(asked)}
        {...submitProps(suspend, asked, () => setAsked(null))}
      >
        {options.explanationOf(asked)}
      </Confirm>
    ),
  }
}

export const suspendColumn = <Row extends Suspendable>({ button }: Suspension<Row>): Column<Row> =>
  actionColumn('100px', (row) => button(row, 'small'))
