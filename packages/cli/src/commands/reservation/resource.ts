import type { Reservation } from '@slipway/sdk'
import { idColumn, type Resource } from '../../core/resource.ts'
import type { Column } from '../../output/print.ts'

const day = (at: string) => at.slice(0, 10)

export const reservationColumns: Column<Reservation>[] = [
  { name: 'type', value: (reservation) => reservation.type },
  { name: 'location', value: (reservation) => reservation.locations.join(', ') },
  { name: 'state', value: (reservation) => reservation.state, isState: true },
  { name: 'gpus', value: (reservation) => reservation.quantity, align: 'right' },
  { name: 'delivered', value: (reservation) => reservation.delivered_quantity, align: 'right' },
  { name: 'used', value: (reservation) => reservation.used_quantity, align: 'right' },
  { name: 'start', value: (reservation) => day(reservation.contract_start_date), hideOrder: 1 },
  { name: 'end', value: (reservation) => day(reservation.contract_end_date) },
  { name: 'price', value: (reservation) => reservation.price, align: 'right' },
  idColumn,
]

export const reservations: Resource<Reservation> = {
  noun: 'reservation',
  title: 'reservation',
  example: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10',
  reference: 'id of the reservation',
  columns: reservationColumns,
  route: 'reservationList',
  list: async (cli) => cli.client.collect('reservationList', { organization_id: await cli.organization() }),
  named: ({ id }) => ({ id, name: id }),
}
