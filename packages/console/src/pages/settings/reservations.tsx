import { useProject } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { ReservationTable } from '../../features/fleet/reservation-table.tsx'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page } from '../../ui/page.tsx'

/** Reservation events are only in the organization's event log, so the page polls. */
const pollMs = 10_000

/** The GPUs that the organization has reserved. */
export function Reservations() {
  const { organization_id } = useProject()
  const reservations = useQuery({
    ...readAll('reservationList', { organization_id }),
    refetchInterval: pollMs,
  })
  return (
    <Page title="Settings" tabTitle="Reservations" isWide>
      <SettingsTabs />
      <Loaded query={reservations} rows={3}>
        {(data) =>
          data.length === 0 ? (
            <Empty title="No reservations">
              A reservation gives the organization GPUs at a fixed price for a fixed period. Ask your operator
              for one.
            </Empty>
          ) : (
            <>
              <ReservationTable reservations={data} />
              <p className="text-sm text-ink-muted">
                The organization’s VMs use reserved GPUs automatically. Delivered GPUs are billed during the
                term, whether VMs use them or not; VMs on them cost nothing extra. GPUs that are not delivered
                are not billed. When a reservation ends, VMs keep running at the list price.
              </p>
            </>
          )
        }
      </Loaded>
    </Page>
  )
}
