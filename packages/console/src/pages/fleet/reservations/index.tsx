import type { Reservation } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { fleetPollMs } from '../../../features/fleet/poll.ts'
import { ReservationTable } from '../../../features/fleet/reservation-table.tsx'
import { FleetPage } from '../../../features/page-tabs.tsx'
import { plural, shortId } from '../../../lib/format.ts'
import { operatorCommands } from '../../../lib/shell.ts'
import { Button, RowButton } from '../../../ui/button.tsx'
import { actionColumn } from '../../../ui/columns/action-column.tsx'
import { Confirm, submitProps } from '../../../ui/dialog.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { NoBreak } from '../../../ui/no-break.tsx'
import { Empty } from '../../../ui/page.tsx'
import { SellReservation } from './sell.tsx'

/** The reservations of all organizations, and how much of each is delivered. */
export function FleetReservations() {
  const reservations = useQuery({ ...readAll('adminReservationList', {}), refetchInterval: fleetPollMs })
  const organizations = useQuery(readAll('adminOrganizationList', {}))
  const [isSelling, setSelling] = useState(false)
  const [endingId, setEndingId] = useState('')
  const ending = reservations.data?.find(({ id }) => id === endingId)
  const buyerOf = ({ organization_id }: Reservation) =>
    organizations.data?.find(({ id }) => id === organization_id)?.name ?? `…${shortId(organization_id)}`
  const end = useAction({
    run: ({ id }: Reservation) => client.adminReservationEnd({ reservation_id: id }),
    done: (reservation) => `Ended the reservation of ${buyerOf(reservation)}`,
    invalidates: ['adminReservationList', 'adminCapacityList'],
    showsErrors: true,
  })
  const sell = (
    <Button kind="primary" icon={<Icon name="plus" size={16} />} onClick={() => setSelling(true)}>
      Sell reservation
    </Button>
  )
  return (
    <FleetPage actions={sell}>
      <Loaded query={reservations} rows={6}>
        {(data) =>
          data.length === 0 ? (
            <Empty title="No reservations yet" action={sell}>
              A reservation gives an organization GPUs at a fixed price for a fixed period. GPUs are collected
              as they become free, beginning 24 hours before the start. No VMs are stopped to free GPUs.
            </Empty>
          ) : (
            <ReservationTable
              reservations={data}
              more={[
                {
                  key: 'organization',
                  title: 'Organization',
                  width: 'minmax(120px, 1fr)',
                  cell: buyerOf,
                },
              ]}
              actions={[
                actionColumn('80px', (row: Reservation) =>
                  row.state === 'ended' ? null : (
                    <RowButton
                      verb="End"
                      name={`the reservation of ${buyerOf(row)}`}
                      kind="danger"
                      onClick={() => setEndingId(row.id)}
                    />
                  ),
                ),
              ]}
            />
          )
        }
      </Loaded>
      {isSelling && <SellReservation onClose={() => setSelling(false)} />}
      {ending && (
        <Confirm
          isOpen
          onClose={() => setEndingId('')}
          title={`End the reservation of ${buyerOf(ending)}`}
          action="End reservation"
          commands={operatorCommands({
            cli: `slipway admin reservation end ${ending.id}`,
            path: `/reservations/${ending.id}/end`,
          })}
          {...submitProps(end, ending, () => setEndingId(''))}
        >
          <p>
            {plural(ending.quantity, 'GPU')} in VMs of type {ending.type},{' '}
            <NoBreak>{ending.locations.join(', ')}</NoBreak>.{' '}
            {ending.state === 'scheduled'
              ? 'The contract has not begun and will be cancelled.'
              : 'The reservation will end now, before the end of its contract.'}
            {ending.vm_ids.length > 0 &&
              ` ${plural(ending.vm_ids.length, 'VM')} will keep running at the list price.`}
            {ending.delivered_quantity > ending.used_quantity && ' Unused GPUs will be offered to the queue.'}
          </p>
        </Confirm>
      )}
    </FleetPage>
  )
}
