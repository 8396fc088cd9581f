import { setTimeout as delay } from 'node:timers/promises'
import type { CapacityRequest } from '@slipway/contract'
import { requireFound } from '../../../domain/failure.ts'
import { claimRequest } from '../../../operations/capacity/grant.ts'
import { cancelRequest, changeRequest, createRequest } from '../../../operations/capacity/requests.ts'
import {
  findRequestRecord,
  listOpenRequestRecords,
  listRequestRecords,
  type RequestRecordRow,
} from '../../../store/capacity/requests.ts'
import { adminCapacityRequestView, capacityRequestView } from '../../../views/capacity.ts'
import { isAtLeast } from '../../access.ts'
import type { Context, Handlers } from '../../context.ts'
import { labelFilter } from '../../filters.ts'
import { pageById } from '../../pages.ts'
import { operationResponse } from '../operations.ts'

/** A signal can be lost, so a wait also reads the request at this interval. */
const pollMs = 1_000

const viewFor =
  (context: Pick<Context, 'caller' | 'organizationId' | 'project'>) =>
  (row: RequestRecordRow): CapacityRequest =>
    capacityRequestView(row, isAtLeast('member', context))

/** A request with `on_available: create` is in the state `held` only briefly. */
const isWaiting = ({ state, on_available }: RequestRecordRow) =>
  state === 'waiting' || (state === 'held' && on_available === 'create')

async function get(context: Context<'capacityRequestGet'>): Promise<CapacityRequest> {
  const { tx, project, params, query, services, reply } = context
  const find = async () =>
    requireFound(
      'capacity request',
      await findRequestRecord(tx, project.projectId, params.capacity_request_id),
    )
  let row = await find()
  const until = performance.now() + (query.wait ?? 0) * 1000
  while (isWaiting(row) && performance.now() < until && !reply.raw.destroyed) {
    const woken = new AbortController()
    const unsubscribe = services.signals.on('capacity', () => woken.abort())
    const pauseMs = Math.min(pollMs, until - performance.now())
    await delay(pauseMs, undefined, { signal: woken.signal }).catch(() => {})
    unsubscribe()
    row = await find()
  }
  if (query.wait) await context.requireStillAllowed()
  return viewFor(context)(row)
}

export const capacityRequestHandlers = {
  capacityRequestCreate: async (context) => {
    const { services, tx, by, body } = context
    return viewFor(context)(await createRequest(tx, services.catalogueCache, by, body))
  },

  capacityRequestList: (context) => {
    const { tx, project, query } = context
    const filter = {
      projectId: project.projectId,
      state: query.state ?? null,
      labels: labelFilter(query),
    }
    return pageById(context, (...page) => listRequestRecords(tx, filter, ...page), viewFor(context))
  },

  capacityRequestGet: get,

  capacityRequestUpdate: async (context) => {
    const { tx, by, params, body } = context
    return viewFor(context)(await changeRequest(tx, by, params.capacity_request_id, body))
  },

  capacityRequestDelete: async (context) => {
    const { tx, by, params } = context
    return viewFor(context)(await cancelRequest(tx, by, params.capacity_request_id))
  },

  capacityRequestClaim: async ({ services, tx, by, params }) =>
    operationResponse(await claimRequest(tx, services.catalogueCache, by, params.capacity_request_id)),

  adminCapacityRequestList: (context) => {
    const { tx, query } = context
    const filter = { location: query.location ?? null, family: query.family ?? null }
    return pageById(
      context,
      (beforeId, limit) => listOpenRequestRecords(tx, { ...filter, beforeId, limit }),
      adminCapacityRequestView,
    )
  },
} satisfies Partial<Handlers>
