import type { EventType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import type { RequestRow } from '../../store/capacity/requests.ts'
import { emit } from '../../store/events/events.ts'
import { capacityRequestView } from '../../views/capacity.ts'

type RequestEvent = Extract<EventType, `capacity_request.${string}`>

/** The caller that changes a request. If it is absent, the service itself makes the change. */
interface By {
  actor: string
  requestId: string
  clientAddress: string
}

/** Emits an event with the record of the request, without its scripts and its position in the queue. */
export const emitRequest = (tx: Tx, type: RequestEvent, request: RequestRow, by?: By): Promise<void> =>
  emit(tx, {
    ...(by && { actor: by.actor, requestId: by.requestId, clientAddress: by.clientAddress }),
    type,
    resourceType: 'capacity_request',
    resourceId: request.id,
    projectId: request.project_id,
    data: capacityRequestView(
      {
        ...request,
        gpus_held: request.state === 'held' ? request.gpus : 0,
        position: null,
        earliest_at: null,
        likely_at: null,
        latest_at: null,
        basis: null,
        estimated_at: null,
        hit_rate: null,
      },
      false,
    ),
  })
