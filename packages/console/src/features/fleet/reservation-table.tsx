import type { Reservation } from '@slipway/sdk'
import { amount, localDate, utcDate } from '../../lib/format.ts'
import { NoBreak } from '../../ui/no-break.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { countColumn, nameColumn, ShareBar } from './columns.tsx'

/** Lists reservations with their sold, delivered and used GPUs. */
export function ReservationTable({
  reservations,
  more = [],
  actions = [],
}: {
  reservations: Reservation[]
  /** Columns after the location. */
  more?: Column<Reservation>[]
  actions?: Column<Reservation>[]
}) {
  const columns: Column<Reservation>[] = [
    nameColumn('Type', (row) => row.type),
    {
      key: 'location',
      title: 'Location',
      width: 'minmax(112px, 1fr)',
      cell: (row) => <NoBreak>{row.locations[0]}</NoBreak>,
    },
    ...more,
    { key: 'state', title: 'State', width: '112px', cell: (row) => <StateBadge state={row.state} /> },
    {
      key: 'delivered',
      title: 'Delivered GPUs',
      width: '160px',
      cell: (row) => (
        <ShareBar
          value={row.delivered_quantity / row.quantity}
          // Before the term begins, the GPUs are set aside but not delivered yet.
          tone={row.state === 'late' ? 'amber' : row.state === 'scheduled' ? 'grey' : 'green'}
          text={`${row.delivered_quantity} of ${row.quantity}`}
        />
      ),
    },
    countColumn('In use', (row) => row.used_quantity),
    {
      key: 'term',
      title: 'Term',
      width: 'minmax(150px, 1fr)',
      cell: ({ contract_start_date: start, contract_end_date: end }) => (
        <span title={`${utcDate(start)} – ${utcDate(end)}`} className="figures whitespace-nowrap">
          {localDate(start, 'days')} – {localDate(end, 'days')}
        </span>
      ),
    },
    {
      key: 'price',
      title: 'USD/GPU-h',
      width: '110px',
      align: 'right',
      isFoldable: true,
      cell: (row) => (row.price ? amount(Number(row.price)) : '–'),
    },
    ...actions,
  ]
  return <Table label="Reservations" rows={reservations} rowKey={({ id }) => id} columns={columns} />
}
