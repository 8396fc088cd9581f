import type { Reservation } from '@slipway/sdk'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Timestamp } from '../../ui/time.tsx'

/** Lists reservations with the numbers of GPUs that were sold, that are delivered and that are used. */
export function ReservationTable({
  reservations,
  more = [],
}: {
  reservations: Reservation[]
  more?: Column<Reservation>[]
}) {
  const columns: Column<Reservation>[] = [
    {
      key: 'type',
      title: 'Type',
      width: 'minmax(110px, 1fr)',
      cell: (row) => <span className="font-medium">{row.type}</span>,
    },
    { key: 'location', title: 'Location', width: 'minmax(120px, 1fr)', cell: (row) => row.locations[0] },
    ...more,
    { key: 'state', title: 'State', width: '120px', cell: (row) => <StateBadge state={row.state} /> },
    { key: 'sold', title: 'GPUs sold', width: '100px', align: 'right', cell: (row) => row.quantity },
    {
      key: 'delivered',
      title: 'Delivered',
      width: '100px',
      align: 'right',
      cell: (row) => row.delivered_quantity,
    },
    { key: 'used', title: 'Used', width: '80px', align: 'right', cell: (row) => row.used_quantity },
    {
      key: 'start',
      title: 'Start',
      width: 'minmax(140px, 1fr)',
      cell: (row) => <Timestamp iso={row.contract_start_date} />,
    },
    {
      key: 'end',
      title: 'End',
      width: 'minmax(140px, 1fr)',
      cell: (row) => <Timestamp iso={row.contract_end_date} />,
    },
    {
      key: 'price',
      title: 'USD per GPU-hour',
      width: '140px',
      align: 'right',
      cell: (row) => row.price || '–',
    },
  ]
  return <Table label="Reservations" rows={reservations} rowKey={({ id }) => id} columns={columns} />
}
