import Type, { type Static } from 'typebox'
import { defineRoutes } from '../route.ts'
import { body, Instant, NonEmptyTimestamp, pagedList, pageQuery, record, Timestamp, Uuid } from '../schema.ts'
import { reservationStates } from '../states.ts'
import { vmTypeNames } from '../vm-types.ts'

export const Reservation = record('Reservation', {
  id: Uuid,
  organization_id: Uuid,
  billing_project_id: Uuid,
  reservation_type: Type.Literal('capacity'),
  product_line: Type.String({ description: 'The GPU family.', examples: ['a100'] }),
  type: Type.String({
    description: 'The VM type that determines how many GPUs are delivered together.',
    examples: ['a100.8x'],
  }),
  state: Type.Enum([...reservationStates], {
    description: '`late`: the contract has begun, and GPUs are missing. Only delivered GPUs are billed.',
  }),
  duration: Type.Integer({ description: 'The length of the contract in whole months, rounded down.' }),
  quantity: Type.Integer({ description: 'GPUs that were bought.' }),
  delivered_quantity: Type.Integer({ description: 'GPUs that are currently delivered to the organization.' }),
  used_quantity: Type.Integer({ description: 'GPUs that VMs currently use.' }),
  locations: Type.Array(Type.String()),
  projects: Type.Array(Uuid, {
    description: 'The projects that may use the reservation. Empty means all projects of the organization.',
  }),
  vm_ids: Type.Array(Uuid),
  contract_start_date: Timestamp,
  contract_end_date: Timestamp,
  price: Type.String({
    description: 'US dollars per GPU hour. Empty for callers with a role below `admin`.',
    examples: ['1.1'],
  }),
  created_at: NonEmptyTimestamp,
})
export type Reservation = Static<typeof Reservation>

const statusQuery = { status: Type.Optional(Type.Enum([...reservationStates])) }

export const ReservationCreate = body('ReservationCreate', {
  organization_id: Uuid,
  billing_project_id: Type.String({
    ...Uuid,
    description: 'The project to which the reservation is billed.',
  }),
  type: Type.Enum(vmTypeNames),
  location: Type.String({ minLength: 1, maxLength: 100 }),
  count: Type.Integer({ minimum: 1, maximum: 10_000, description: 'The number of VMs of this type.' }),
  contract_start_date: Instant,
  contract_end_date: Instant,
  usd_per_gpu_hour: Type.Number({ minimum: 0, maximum: 1_000_000 }),
  projects: Type.Optional(Type.Array(Uuid, { maxItems: 100, uniqueItems: true })),
  delivery_deadline: Type.Optional(Instant),
})
export type ReservationCreate = Static<typeof ReservationCreate>

export const reservationRoutes = defineRoutes({
  reservationList: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/reservations',
    tag: 'Organizations',
    summary: 'List reservations',
    description:
      'VMs use the GPUs of reservations automatically, beginning with the cheapest reservation. A reservation is billed whether or not its GPUs are used; the VMs that use them are not billed separately.',
    access: 'viewer',
    query: Type.Object({ ...pageQuery, ...statusQuery }),
    response: pagedList('ReservationList', Reservation),
  },
  reservationGet: {
    method: 'GET',
    path: '/v0.1/organizations/{organization_id}/reservations/{reservation_id}',
    tag: 'Organizations',
    summary: 'Read a reservation',
    access: 'viewer',
    response: Reservation,
  },
})

export const adminReservationRoutes = defineRoutes({
  adminReservationList: {
    method: 'GET',
    path: '/v0.1/admin/reservations',
    tag: 'Operators',
    summary: 'List the reservations of all organizations',
    access: 'operator',
    query: Type.Object({ ...pageQuery, ...statusQuery, organization_id: Type.Optional(Uuid) }),
    response: pagedList('AdminReservationList', Reservation),
  },
  adminReservationCreate: {
    method: 'POST',
    path: '/v0.1/admin/reservations',
    tag: 'Operators',
    summary: 'Sell a reservation',
    description:
      'From 24 hours before the start, GPUs are assigned to the reservation as they become free. No VM is stopped for this. Until all GPUs are delivered, only delivered GPUs are billed.',
    access: 'operator',
    body: ReservationCreate,
    response: Reservation,
    errors: ['not_found'],
  },
  adminReservationGet: {
    method: 'GET',
    path: '/v0.1/admin/reservations/{reservation_id}',
    tag: 'Operators',
    summary: 'Read a reservation',
    access: 'operator',
    response: Reservation,
  },
  adminReservationUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/reservations/{reservation_id}',
    tag: 'Operators',
    summary: 'Change the end or the projects of a reservation',
    access: 'operator',
    body: body('ReservationUpdate', {
      contract_end_date: Type.Optional(Instant),
      projects: Type.Optional(Type.Array(Uuid, { maxItems: 100, uniqueItems: true })),
    }),
    response: Reservation,
    errors: ['conflict'],
  },
  adminReservationEnd: {
    method: 'POST',
    path: '/v0.1/admin/reservations/{reservation_id}/end',
    tag: 'Operators',
    summary: 'End a reservation now',
    description: 'Its VMs continue to run, at the list price.',
    isDestructive: true,
    access: 'operator',
    response: Reservation,
    errors: ['conflict'],
  },
})
