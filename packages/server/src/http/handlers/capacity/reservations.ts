import { requireFound } from '../../../domain/failure.ts'
import {
  changeReservation,
  createReservation,
  endReservation,
} from '../../../operations/capacity/reservations.ts'
import {
  findReservation,
  listReservations,
  type ReservationRow,
} from '../../../store/capacity/reservations.ts'
import { reservationView } from '../../../views/capacity.ts'
import { isAtLeast } from '../../access.ts'
import type { Context, Handlers } from '../../context.ts'
import { pageById } from '../../pages.ts'

const isAdmin = ({ caller, organizationId }: Pick<Context, 'caller' | 'organizationId'>) =>
  isAtLeast('admin', { caller, organizationId, project: null })

const operatorView = (row: ReservationRow) => reservationView(row, true)

export const reservationHandlers = {
  reservationList: (context) => {
    const { tx, query, organizationId } = context
    const filter = { organizationId, status: query.status ?? null }
    const mayReadPrice = isAdmin(context)
    return pageById(
      context,
      (...page) => listReservations(tx, filter, ...page),
      (row) => reservationView(row, mayReadPrice),
    )
  },

  async reservationGet(context) {
    const { tx, params, organizationId } = context
    const found = await findReservation(tx, params.reservation_id)
    const row = requireFound('reservation', found?.organization_id === organizationId ? found : undefined)
    return reservationView(row, isAdmin(context))
  },

  adminReservationList: (context) => {
    const { tx, query } = context
    const filter = { organizationId: query.organization_id ?? null, status: query.status ?? null }
    return pageById(context, (...page) => listReservations(tx, filter, ...page), operatorView)
  },

  adminReservationGet: async ({ tx, params }) =>
    operatorView(requireFound('reservation', await findReservation(tx, params.reservation_id))),

  adminReservationCreate: async ({ tx, by, body, services }) =>
    operatorView(await createReservation(tx, by, body, services.config.capacity)),

  adminReservationUpdate: async ({ tx, by, params, body }) =>
    operatorView(await changeReservation(tx, by, params.reservation_id, body)),

  adminReservationEnd: async ({ tx, by, params }) =>
    operatorView(await endReservation(tx, by, params.reservation_id)),
} satisfies Partial<Handlers>
