import { listEvents, stampEvents } from '../../store/events/events.ts'
import { eventView } from '../../views/events.ts'
import { answered, type Context, type Handlers } from '../context.ts'
import { page } from '../pages.ts'
import { wantsStream } from '../streams/streams.ts'

type EventRoutes = 'eventList' | 'adminEventList'

export const eventHandlers: Handlers<EventRoutes> = {
  eventList: (context) => listOrStream(context, context.project.projectId),
  adminEventList: (context) => listOrStream(context, null),
}

async function listOrStream(context: Context<EventRoutes>, projectId: string | null) {
  const { tx, query, services, request } = context
  if (wantsStream(request.headers.accept)) {
    await services.streams.open(context, projectId)
    return answered
  }
  // What is committed shows at once, without waiting for the stamper's turn.
  await stampEvents(services.database, true)
  const filter = {
    projectId,
    resourceId: query.resource_id ?? null,
    type: query.type ?? null,
    actor: query.actor ?? null,
  }
  const read = (before: string | null, limit: number) =>
    listEvents(tx, { ...filter, beforePosition: before === null ? null : Number(before), limit })
  return page(context, read, eventView, (row) => String(row.position))
}
