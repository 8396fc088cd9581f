import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { fleetPollMs } from '../../features/fleet/poll.ts'
import { ReservationTable } from '../../features/fleet/reservation-table.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { shortId } from '../../lib/format.ts'
import { Loaded } from '../../ui/loaded.tsx'
import { Section } from '../../ui/page.tsx'

/** The reservations of all organizations, and how many of their GPUs are delivered. */
export function FleetReservations() {
  const reservations = useQuery({ ...readAll('adminReservationList', {}), refetchInterval: fleetPollMs })
  return (
    <FleetPage>
      <Section title="Reservations">
        <Loaded query={reservations} rows={6}>
          {(data) =>
            data.length === 0 ? (
              <p className="card px-4 py-3 text-ink-muted">
                No reservations. Sell one with <span className="mono">slipway admin reservation create</span>.
              </p>
            ) : (
              <ReservationTable
                reservations={data}
                more={[
                  {
                    key: 'organization',
                    title: 'Organization',
                    width: '130px',
                    cell: (row) => <span className="mono">{shortId(row.organization_id)}</span>,
                  },
                ]}
              />
            )
          }
        </Loaded>
      </Section>
    </FleetPage>
  )
}
