import type { ReactNode } from 'react'
import type { Column } from '../table.tsx'

/** Returns the last column of a table, with each row's buttons. */
export const actionColumn = <Row,>(width: string, buttons: (row: Row) => ReactNode): Column<Row> => ({
  key: 'actions',
  title: '',
  width,
  align: 'right',
  isActions: true,
  cell: (row) => <span className="inline-flex gap-1">{buttons(row)}</span>,
})
