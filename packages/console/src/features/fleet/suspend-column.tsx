import type { useAction } from '../../api/actions.ts'
import { Button } from '../../ui/button.tsx'
import type { Column } from '../../ui/table.tsx'

interface Suspendable {
  id: string
  suspended: boolean
}

/** Returns the column of a button that suspends what a row stands for, or restores it. */
export const suspendColumn = <Row extends Suspendable>(
  suspend: ReturnType<typeof useAction<Row>>,
  whyNot: (row: Row) => string | undefined = () => undefined,
): Column<Row> => ({
  key: 'actions',
  title: '',
  width: '120px',
  align: 'right',
  isBare: true,
  cell: (row) => (
    <Button
      size="small"
      reason={whyNot(row)}
      isBusy={suspend.isPending && suspend.variables?.id === row.id}
      onClick={() => suspend.mutate(row)}
    >
      {row.suspended ? 'Restore' : 'Suspend'}
    </Button>
  ),
})
