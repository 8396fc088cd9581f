import { useProject } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { ReservationTable } from '../../features/fleet/reservation-table.tsx'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty, Page } from '../../ui/page.tsx'

/** The GPUs that the organization has reserved. */
export function Reservations() {
  const { organization_id } = useProject()
  const reservations = useQuery(readAll('reservationList', { organization_id }))
  return (
    <Page title="Settings" isWide>
      <SettingsTabs />
      <Loaded query={reservations} rows={3}>
        {(data) =>
          data.length === 0 ? (
            <Empty title="No reservations" cli="slipway reservation list">
              A reservation holds GPUs for the organization at a fixed price. The operator of the service
              sells it.
            </Empty>
          ) : (
            <ReservationTable reservations={data} />
          )
        }
      </Loaded>
    </Page>
  )
}
