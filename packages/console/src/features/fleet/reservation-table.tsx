import type { Reservation } from '@slipway/sdk'
import { localDate, usd, utcDate } from '../../lib/format.ts'
import { NoBreak } from '../../ui/no-break.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, noValue, Table } from '../../ui/table.tsx'
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
      title: 'GPUs',
      width: '160px',
      // Before the term begins, the GPUs are set aside but not delivered yet.
      cell: ({ state, delivered_quantity, quantity }) =>
        state === 'scheduled' ? (
          `${delivered_quantity} of ${quantity} set aside`
        ) : (
          <ShareBar
            value={delivered_quantity / quantity}
            tone={state === 'late' ? 'amber' : 'green'}
            text={`${delivered_quantity} of ${quantity}`}
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
      title: 'Price per GPU',
      width: '120px',
      align: 'right',
      isFoldable: true,
      cell: (row) => (row.price ? `${usd(Number(row.price))}/h` : noValue),
    },
    ...actions,
  ]
  return <Table label="Reservations" rows={reservations} rowKey={({ id }) => id} columns={columns} />
}
