import { Failure } from '../../domain/failure.ts'
import {
  type EventRow,
  type EventScope,
  findEventBounds,
  listEvents,
  listEventsAfter,
  stampEvents,
} from '../../store/events/events.ts'
import { adminEventView, eventView } from '../../views/events.ts'
import { showsClientAddress } from '../access.ts'
import { alreadyResponded, type Context, type Handlers } from '../context.ts'
import { page } from '../pages.ts'
import { wantsStream } from '../streams/streams.ts'

type EventRoutes = 'eventList' | 'organizationEventList' | 'adminEventList'

export const eventHandlers = {
  eventList: (context) =>
    listOrStream(context, { projectId: context.project.projectId, organizationId: null }, eventView),
  organizationEventList: (context) =>
    listOrStream(context, { projectId: null, organizationId: context.organizationId }, eventView),
  adminEventList: (context) => {
    const { project_id, organization_id } = context.query
    const scope = { projectId: project_id ?? null, organizationId: organization_id ?? null }
    return listOrStream(context, scope, adminEventView)
  },
} satisfies Partial<Handlers>

async function listOrStream<View>(
  context: Context<EventRoutes>,
  scope: EventScope,
  view: (row: EventRow, showsClient: boolean) => View,
) {
  const { tx, query, services, request } = context
  const filter = {
    ...scope,
    resourceId: query.resource_id ?? null,
    type: query.type ?? null,
    actor: query.actor ?? null,
  }
  if (wantsStream(request.headers.accept)) {
    await services.streams.open(context, filter)
    return alreadyResponded
  }
  // Stamp events first, so that the list contains every event that was committed before the request.
  await stampEvents(services.database, true)
  const { after } = query
  if (after !== undefined) await requireKept(context, after)
  const read = (cursor: string | null, limit: number) =>
    after === undefined
      ? listEvents(tx, { ...filter, limit }, cursor === null ? null : Number(cursor))
      : listEventsAfter(tx, { ...filter, limit }, Math.max(after, Number(cursor ?? 0)))
  const showsClient = showsClientAddress(request.grant)
  return page(
    context,
    read,
    (row) => view(row, showsClient),
    (row) => String(row.position),
  )
}

/** A client that continues from a position must not miss events. `after=0` asks for all events that are still stored. */
async function requireKept({ tx }: Context<EventRoutes>, after: number): Promise<void> {
  if (after > 0 && after < (await findEventBounds(tx)).pruned)
    throw new Failure(
      'invalid_argument',
      'Some events after this position were deleted after 90 days. Use after=0 to list the remaining events.',
    )
}
