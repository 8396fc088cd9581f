import type { Event, OperationState } from '@slipway/sdk'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { Link, type LinkProps } from '@tanstack/react-router'
import { lazy, Suspense, useMemo } from 'react'
import { client } from '../api/client.ts'
import { useMe, useProject } from '../api/me.ts'
import { useActorNames, useResourceNames } from '../api/resource-names.ts'
import {
  durationOfGroup,
  type EventGroup,
  eventTone,
  groupEvents,
  operationOf,
  withoutCutGroup,
} from '../lib/event-groups.ts'
import {
  count,
  eventText,
  preciseDuration,
  quotaLabel,
  resourceText,
  shortId,
  utcDate,
  zonedTitle,
} from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { Copyable } from '../ui/copy.tsx'
import { ErrorState } from '../ui/error.tsx'
import { Name, NoBreak, Sentence } from '../ui/no-break.tsx'
import { Skeleton } from '../ui/page.tsx'
import { RowToggle } from '../ui/row-toggle.tsx'
import { Mark } from '../ui/state.tsx'
import { type Column, noValue, Table } from '../ui/table.tsx'
import { Timestamp } from '../ui/time.tsx'
import { Actor, type Names } from './activity/actor.tsx'
import { type WantedRequest, wantedName } from './capacity/wanted-name.ts'

const EventDetails = lazy(() => import('./activity/event-details.tsx'))

interface ActivityFilter {
  resource_type?: string | undefined
  operation_state?: OperationState | undefined
  q?: string | undefined
  start?: string | undefined
  end?: string | undefined
}

interface EventTableProps {
  projectId: string
  resourceId?: string
  type?: string
  actor?: string
  /** Filters of the activity page. */
  filter?: ActivityFilter
  /** The row whose details are shown below it: the ID of an operation or of an event. */
  openRow?: string
  onOpen?: (row: string) => void
  limit?: number
  omit?: ColumnKey[]
  /** Shows only the newest events, without a button for older ones. */
  isExcerpt?: boolean
}

export function EventTable({
  projectId,
  resourceId = '',
  type = '',
  actor = '',
  filter,
  openRow,
  onOpen,
  limit = 100,
  omit,
  isExcerpt = false,
}: EventTableProps) {
  const actors = useActorNames(useProject())
  const events = useInfiniteQuery({
    queryKey: ['eventList', { projectId, resourceId, type, actor, filter, limit, isExcerpt }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.eventList(
        {
          project_id: projectId,
          // An operation, which is one row, usually has three events.
          limit: isExcerpt ? limit * 4 : limit,
          page_token: pageParam || undefined,
          resource_id: resourceId || undefined,
          type: type || undefined,
          actor: actor || undefined,
          ...filter,
        },
        { signal },
      ),
    getNextPageParam: (page) => page.next_page_token || undefined,
    // While a filter changes, the rows stay until the new ones are read.
    ...(filter && { placeholderData: keepPreviousData }),
  })
  if (events.error && !events.data)
    return <ErrorState error={events.error} onRetry={() => events.refetch()} />
  if (!events.data) return <Skeleton rows={4} />
  const rows = events.data.pages.flatMap((page) => page.items)
  if (rows.length === 0)
    return (
      <p className="card px-4 py-3 text-ink-muted">
        {type || actor || Object.values(filter ?? {}).some(Boolean)
          ? 'No events match the filters.'
          : 'No events in the last 90 days.'}
      </p>
    )
  return (
    <>
      <EventRows
        rows={rows}
        hasOlder={events.hasNextPage}
        projectId={projectId}
        actors={actors}
        maxRows={isExcerpt ? limit : undefined}
        omit={omit}
        openRow={openRow}
        onOpen={onOpen}
      />
      {!isExcerpt && <OlderEvents query={events} />}
    </>
  )
}

interface OlderEventsProps {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }
}

/** A button that loads the next page of events, if there is one. */
export const OlderEvents = ({ query }: OlderEventsProps) =>
  query.hasNextPage && (
    <div>
      <Button isBusy={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
        Show older events
      </Button>
    </div>
  )

interface EventRowsProps {
  rows: ListedEvent[]
  /** True if there are older events that are not read yet. */
  hasOlder: boolean
  actors: Map<string, string>
  projectId?: string
  /** Shows the source addresses, which only admins may see. */
  hasAddresses?: boolean
  /** Returns the tenant of an event, for lists with events of several tenants. */
  tenantOf?: ((event: ListedEvent) => Tenant) | undefined
  /** True on operator pages, which show the name of every actor and link to fleet pages. */
  isFleet?: boolean
  /** Names of resources by ID, for events that do not contain them. */
  names?: ReadonlyMap<string, string>
  /** The maximum number of rows. */
  maxRows?: number | undefined
  /** Columns that would be the same in every row, or for which there is too little space. */
  omit?: ColumnKey[] | undefined
  openRow?: string | undefined
  /** Shows the details of a row, or hides them if the ID is empty. */
  onOpen?: ((row: string) => void) | undefined
}

const noNames: ReadonlyMap<string, string> = new Map()

/** The organization of an event, and its project if it has one. */
export interface Tenant {
  organizationId: string
  text: string
}

/** Operators also see the project and organization of an event. */
export type ListedEvent = Event & { project_id?: string; organization_id?: string }

/** Shows one row for each group of events. */
export function EventRows({
  rows,
  hasOlder,
  actors,
  projectId = '',
  hasAddresses = false,
  tenantOf,
  isFleet = false,
  names = noNames,
  maxRows,
  omit = [],
  openRow = '',
  onOpen,
}: EventRowsProps) {
  const currentNames = useResourceNames(projectId)
  const { projects, organizations } = useMe()
  const groups = useMemo(() => {
    const all = groupEvents(rows)
    return (hasOlder ? withoutCutGroup(all) : all).slice(0, maxRows)
  }, [rows, hasOlder, maxRows])
  const namesInEvents = new Map(
    rows.map((event) => [event.resource_id, nameInEvent(event)] as const).filter(([, name]) => name !== ''),
  )
  const mine = new Map([...projects, ...organizations].map(({ id, name }) => [id, name]))
  // Other events still contain the names of deleted resources.
  const nameOf = (id: string): string | undefined =>
    currentNames.get(id) ?? namesInEvents.get(id) ?? names.get(id) ?? mine.get(id) ?? actors.get(`user:${id}`)
  const hasDurations = groups.some(hasDuration)
  const columns = columnsFor(projectId, { nameOf, actors, isFleet }, onOpen && { openRow, onOpen })
  if (tenantOf) columns.splice(2, 0, tenantColumn(tenantOf))
  if (hasAddresses) columns.splice(-1, 0, addressColumn)
  if (hasDurations) columns.splice(-1, 0, durationColumn)
  const below = (row: Row) =>
    openRow !== '' &&
    idOf(row) === openRow && (
      <Suspense fallback={<Skeleton rows={2} />}>
        <EventDetails projectId={projectId} events={row.events} />
      </Suspense>
    )
  return (
    <Table
      label="Events"
      rows={groups}
      columns={columns.filter(({ key }) => !omit.some((omitted) => omitted === key))}
      rowKey={({ events }) => events.at(-1)!.id}
      below={below}
    />
  )
}

type Row = EventGroup<ListedEvent>

type ColumnKey = 'on' | 'by' | 'took'

/** Returns the resource name in the event; empty if the event has none. */
function nameInEvent({ resource_type, data: { name, email, url, pci_address } }: ListedEvent): string {
  if (resource_type === 'quota_request' && typeof name === 'string') return quotaLabel(name)
  const found = name ?? email ?? url ?? (resource_type === 'gpu' ? pci_address : undefined)
  return typeof found === 'string' ? found : ''
}

/** A capacity request has no name of its own. */
const requestName = ({ resource_type, data }: ListedEvent, { nameOf }: Names): string | undefined =>
  resource_type === 'capacity_request' ? wantedName((data.request ?? {}) as WantedRequest, nameOf) : undefined

/** The ID of a row for links: the operation, or the only event. */
const idOf = ({ event, events }: Row): string => operationOf(event) || events.at(-1)!.id

interface OpenDetails {
  openRow: string
  onOpen: (row: string) => void
}

const columnsFor = (projectId: string, names: Names, openDetails: OpenDetails | undefined): Column<Row>[] => [
  {
    key: 'what',
    title: 'Event',
    width: 'minmax(164px, 1.7fr)',
    cell: (row) => <EventCell group={row} openDetails={openDetails} />,
  },
  {
    key: 'on',
    title: 'Resource',
    width: 'minmax(180px, 1.6fr)',
    cell: ({ event }) => (
      <ResourceCell
        event={event}
        base={names.isFleet ? '/fleet' : projectId && `/projects/${projectId}`}
        known={names.nameOf(event.resource_id) ?? requestName(event, names)}
      />
    ),
  },
  {
    key: 'by',
    title: 'Actor',
    width: 'minmax(180px, 1.2fr)',
    isFoldable: true,
    cell: ({ event: { actor } }) => <Actor actor={actor} names={names} />,
  },
  {
    key: 'when',
    title: zonedTitle('Time'),
    width: '168px',
    align: 'right',
    cell: ({ events }) => <Timestamp iso={events[0]!.created_at} hasSeconds hasZone={false} />,
  },
]

/** Shows the result with a color, and all events of the group on hover. */
function EventCell({ group, openDetails }: { group: Row; openDetails: OpenDetails | undefined }) {
  const { event, events } = group
  const operation = operationOf(event)
  const id = idOf(group)
  const isOpen = openDetails?.openRow === id
  const tone = eventTone(event.type)
  const all = events.map(({ type, created_at }) => `${type} ${utcDate(created_at)}`).toReversed()
  const detail = typeof event.data.detail === 'string' ? event.data.detail : failureOf(event)
  return (
    <span title={all.join('\n')}>
      <span className="break-words">
        {openDetails ? (
          <RowToggle
            isOpen={isOpen}
            title="Details of the event"
            onToggle={() => openDetails.onOpen(isOpen ? '' : id)}
          >
            {eventText(event)}
          </RowToggle>
        ) : (
          eventText(event)
        )}
        {detail && <span className="text-ink-muted">: {detail}</span>}
        {!operation && events.length > 1 && (
          <span className="text-ink-muted">
            {' '}
            <NoBreak>× {count(events.length)}</NoBreak>
          </span>
        )}
      </span>
      {/* Most events have no mark, so it is behind the text, which is aligned with the header. */}
      {tone && (
        <span className="ml-2 inline-flex align-middle">
          <Mark tone={tone} />
        </span>
      )}
    </span>
  )
}

function failureOf({ data }: Event): string {
  const { message } = (data.error ?? {}) as { message?: unknown }
  return typeof message === 'string' ? message : ''
}

const tenantColumn = (tenantOf: (event: ListedEvent) => Tenant): Column<Row> => ({
  key: 'tenant',
  title: 'Tenant',
  width: 'minmax(130px, 1.2fr)',
  isFoldable: true,
  cell: ({ event }) => {
    const { organizationId, text } = tenantOf(event)
    if (!organizationId) return <Sentence text={text || noValue} />
    return (
      <Link to="/fleet/organizations/$organizationId" params={{ organizationId }} className="link">
        <Sentence text={text} />
      </Link>
    )
  },
})

const hasDuration = ({ event, events }: Row): boolean => events.length > 1 && operationOf(event) !== ''

/** The time from the first to the last event of an operation. */
const durationColumn: Column<Row> = {
  key: 'took',
  title: 'Duration',
  width: '104px',
  align: 'right',
  isFoldable: true,
  cell: (group) => hasDuration(group) && preciseDuration(durationOfGroup(group)),
}

const addressColumn: Column<Row> = {
  key: 'address',
  title: 'IP address',
  width: 'minmax(124px, 0.4fr)',
  isFoldable: true,
  // Only the event of the request has the client's address; the server writes the later events.
  cell: ({ events }) => {
    const address = events.findLast(({ client_address }) => client_address)?.client_address
    if (address) return <span className="mono">{address}</span>
    return <span title="Written by the server, not by a request">{noValue}</span>
  },
}

interface ResourceCellProps {
  event: Event
  /** The base path of the link; empty if resources have no pages there. */
  base: string
  known: string | undefined
}

/** The paths of resources that have their own page. */
const folders: Record<string, string> = { vm: 'vms', instance_group: 'groups' }
const fleetFolders: Record<string, string> = {
  vm: 'vms',
  user: 'users',
  host: 'hosts',
  organization: 'organizations',
}

function ResourceCell({ event, base, known }: ResourceCellProps) {
  const { resource_type, resource_id } = event
  const kind = resourceText(resource_type)
  const shortened = <Copyable text={resource_id} shown={`…${shortId(resource_id)}`} />
  const name = known ? <Name text={known} /> : resource_id && shortened
  const folder = (base === '/fleet' ? fleetFolders : folders)[resource_type]
  if (!folder || !base || !known)
    return (
      <span title={resource_id}>
        {kind} {name}
      </span>
    )
  return (
    <>
      {kind}{' '}
      <Link {...({ to: `${base}/${folder}/${resource_id}` } as LinkProps)} className="link">
        {name}
      </Link>
    </>
  )
}
