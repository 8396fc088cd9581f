import { Failure } from '../../domain/failure.ts'
import { findEventResources, findPositions, findUnfinishedSince } from '../../store/events/event-search.ts'
import {
  type EventFilter,
  type EventRow,
  type EventScope,
  findEventBounds,
  listEvents,
  listEventsForward,
  stampEvents,
} from '../../store/events/events.ts'
import { adminEventView, eventView } from '../../views/events.ts'
import { showsClientAddress } from '../access.ts'
import { alreadyResponded, type Context, type Handlers } from '../context.ts'
import { page } from '../pages.ts'
import { wantsStream } from '../streams/streams.ts'
import { invalidParameter } from '../validation.ts'

type EventRoutes = 'eventList' | 'organizationEventList' | 'adminEventList'
type ListFilter = Omit<EventFilter, 'limit'>

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
    resourceType: query.resource_type ?? null,
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
  if (after !== undefined) await requireNotPruned(context, after)
  const wanted: ListFilter = { ...filter, ...(await listFilterOf(context, scope)) }
  const { above, below } = await findPositions(tx, wanted.start, wanted.end)
  const read = (cursor: string | null, limit: number) => {
    const position = Number(cursor ?? 0)
    return after === undefined
      ? listEvents(tx, { ...wanted, limit }, { above, below: cursor === null ? below : position })
      : listEventsForward(tx, { ...wanted, limit }, { above: Math.max(above, after, position), below })
  }
  const showsClient = showsClientAddress(request.grant)
  return page(
    context,
    read,
    (row) => view(row, showsClient),
    (row) => String(row.position),
  )
}

/** Returns the filters that streams do not have. */
async function listFilterOf(
  { tx, query }: Context<EventRoutes>,
  { projectId }: EventScope,
): Promise<Pick<ListFilter, 'resourceIds' | 'operationState' | 'start' | 'end'>> {
  // Only the list of a project's events has these two filters.
  const { q, operation_state: operationState = null } = query as Context<'eventList'>['query']
  const [start, end] = [timeOf('start', query.start), timeOf('end', query.end)]
  const found = q === undefined || projectId === null ? null : await findEventResources(tx, projectId, q)
  const resourceIds = found?.map(({ resource_id }) => resource_id) ?? null
  if (operationState !== 'IN_PROGRESS' || projectId === null)
    return { resourceIds, operationState, start, end }
  // Older events belong to operations that have ended.
  const { since } = (await findUnfinishedSince(tx, projectId))!
  return { resourceIds, operationState, start: start !== null && start > since ? start : since, end }
}

function timeOf(field: string, text: string | undefined): Date | null {
  if (text === undefined) return null
  const time = new Date(text)
  // The format allows leap seconds, which `Date` does not accept.
  if (Number.isNaN(time.getTime())) throw invalidParameter(field, 'is not a valid time')
  return time
}

/**
 * Throws 400 if events after this position were deleted, because a client that continues from a position must
 * not miss events. `after=0` requests all events that are still stored.
 */
async function requireNotPruned({ tx }: Context<EventRoutes>, after: number): Promise<void> {
  if (after > 0 && after < (await findEventBounds(tx)).pruned)
    throw new Failure(
      'invalid_argument',
      'Some events after this position were deleted after 90 days. Use after=0 to list the remaining events.',
    )
}
