import type { Event } from '@slipway/sdk'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { client } from '../api/client.ts'
import { useMe, useProject } from '../api/me.ts'
import { useActorNames, useResourceNames } from '../api/resource-names.ts'
import { eventWords, preciseDuration, resourceWords, shortId, utcDate } from '../lib/format.ts'
import { eventTone, type Happening, happeningsOf, tookMs } from '../lib/happenings.ts'
import { Button } from '../ui/button.tsx'
import { ErrorState } from '../ui/error.tsx'
import { Skeleton } from '../ui/page.tsx'
import { Mark } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { When } from '../ui/time.tsx'

interface EventTableProps {
  projectId: string
  resourceId?: string
  type?: string
  actor?: string
  limit?: number
  /** Only the newest are shown; a link beside the table leads to the rest. */
  isExcerpt?: boolean
}

export function EventTable({
  projectId,
  resourceId = '',
  type = '',
  actor = '',
  limit = 100,
  isExcerpt = false,
}: EventTableProps) {
  const actors = useActorNames(useProject())
  const events = useInfiniteQuery({
    queryKey: ['eventList', { projectId, resourceId, type, actor, limit, isExcerpt }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.eventList(
        {
          project_id: projectId,
          // One change has several events, usually three.
          limit: isExcerpt ? limit * 4 : limit,
          page_token: pageParam || undefined,
          resource_id: resourceId || undefined,
          type: type || undefined,
          actor: actor || undefined,
        },
        { signal },
      ),
    getNextPageParam: (page) => page.next_page_token || undefined,
  })
  if (events.error && !events.data)
    return <ErrorState error={events.error} onRetry={() => events.refetch()} />
  if (!events.data) return <Skeleton rows={4} />
  const rows = events.data.pages.flatMap((page) => page.items)
  if (rows.length === 0)
    return <p className="card px-4 py-3 text-ink-muted">No events in the last 90 days.</p>
  return (
    <>
      <EventRows rows={rows} projectId={projectId} actors={actors} most={isExcerpt ? limit : undefined} />
      {events.hasNextPage && !isExcerpt && (
        <div>
          <Button isBusy={events.isFetchingNextPage} onClick={() => events.fetchNextPage()}>
            Older events
          </Button>
        </div>
      )}
    </>
  )
}

interface EventRowsProps {
  rows: Told[]
  actors: Map<string, string>
  projectId?: string
  /** Shows the source addresses; admins may see them. */
  hasAddresses?: boolean
  /** Returns whose each is, where events of several tenants stand together. */
  tenantOf?: (event: Told) => string
  /** Names of what the events are about, where they do not tell them. */
  names?: ReadonlyMap<string, string>
  /** No more lines than these. */
  most?: number | undefined
}

const noNames: ReadonlyMap<string, string> = new Map()

/** Operators are also told whose an event is. */
type Told = Event & { project_id?: string; organization_id?: string }

/** Shows one line for each thing that happened. */
export function EventRows({
  rows,
  actors,
  projectId = '',
  hasAddresses = false,
  tenantOf,
  names = noNames,
  most,
}: EventRowsProps) {
  const living = useResourceNames(projectId)
  const { projects, organizations } = useMe()
  const happenings = useMemo(() => happeningsOf(rows).slice(0, most), [rows, most])
  const said = new Map(
    rows.map((event) => [event.resource_id, nameTold(event)] as const).filter(([, name]) => name !== ''),
  )
  const mine = new Map([...projects, ...organizations].map(({ id, name }) => [id, name]))
  // Other events still know the name of what has been deleted.
  const nameOf = (id: string) =>
    living.get(id) ?? said.get(id) ?? names.get(id) ?? mine.get(id) ?? actors.get(`user:${id}`)
  const columns = columnsFor(projectId, { nameOf, actors, isOfFleet: tenantOf !== undefined })
  if (tenantOf) columns.splice(2, 0, tenantColumn(tenantOf))
  if (hasAddresses) columns.splice(-1, 0, addressColumn)
  return (
    <Table label="Events" rows={happenings} columns={columns} rowKey={({ events }) => events.at(-1)!.id} />
  )
}

type Row = Happening<Told>

interface Names {
  nameOf: (id: string) => string | undefined
  actors: Map<string, string>
  /** Operators read it: they may know who each was. */
  isOfFleet: boolean
}

/** Returns what the subject of an event is called in it; empty where it does not say so. */
function nameTold({ resource_type, data: { name, email, url, pci_address } }: Told): string {
  const told = name ?? email ?? url ?? (resource_type === 'gpu' ? pci_address : undefined)
  return typeof told === 'string' ? told : ''
}

const columnsFor = (projectId: string, names: Names): Column<Row>[] => [
  {
    key: 'what',
    title: 'Event',
    width: 'minmax(264px, 1.2fr)',
    cell: (row) => <What happening={row} />,
  },
  {
    key: 'on',
    title: 'Resource',
    width: 'minmax(180px, 2fr)',
    cell: ({ event }) => (
      <Subject event={event} projectId={projectId} known={names.nameOf(event.resource_id)} />
    ),
  },
  {
    key: 'by',
    title: 'Actor',
    width: 'minmax(180px, 1.2fr)',
    cell: ({ event: { actor } }) => {
      const words = actorWords(actor, names)
      return <span title={`${words} (${actor})`}>{words}</span>
    },
  },
  {
    key: 'when',
    title: 'Time',
    width: '166px',
    align: 'right',
    cell: ({ events }) => <When iso={events[0]!.created_at} hasSeconds />,
  },
]

/** Shows the outcome with a color, the duration, and on hover each of its events. */
function What({ happening }: { happening: Row }) {
  const { event, events } = happening
  const all = events.map(({ type, created_at }) => `${type} ${utcDate(created_at)}`).toReversed()
  const detail = typeof event.data.detail === 'string' ? event.data.detail : failureOf(event)
  return (
    <span className="inline-flex max-w-full gap-2" title={all.join('\n')}>
      <span className="flex h-5 items-center">
        <Mark tone={eventTone(event.type)} />
      </span>
      <span className="min-w-0 break-words">
        {eventWords(event)}
        {events.length > 1 && (
          <span className="figures whitespace-nowrap text-ink-muted">
            {' '}
            in {preciseDuration(tookMs(happening))}
          </span>
        )}
        {detail && <span className="text-ink-muted">: {detail}</span>}
      </span>
    </span>
  )
}

function failureOf({ data }: Event): string {
  const { message } = (data.error ?? {}) as { message?: unknown }
  return typeof message === 'string' ? message : ''
}

const tenantColumn = (tenantOf: (event: Told) => string): Column<Row> => ({
  key: 'tenant',
  title: 'Tenant',
  width: 'minmax(130px, 1.2fr)',
  cell: ({ event }) => <span title={tenantOf(event)}>{tenantOf(event) || '–'}</span>,
})

const addressColumn: Column<Row> = {
  key: 'address',
  title: 'IP address',
  width: 'minmax(120px, 0.6fr)',
  // The first event names the actor; later ones come from the service itself.
  cell: ({ events }) =>
    events.findLast(({ client_address }) => client_address)?.client_address || (
      <span className="text-ink-muted">–</span>
    ),
}

/** The actor of events that no user caused. */
export const theService = 'Slipway'

/** Returns words for who did something. A tenant is not told which operator it was. */
function actorWords(actor: string, { nameOf, actors, isOfFleet }: Names): string {
  const [kind = '', id = ''] = actor.split(':')
  if (kind === 'system') return theService
  const name = actors.get(actor) ?? (kind === 'user' && nameOf(id))
  if (name) return name
  if (!isOfFleet && kind === 'operator_key') return 'an operator'
  // Names are unknown until the members are loaded.
  const areMembersRead = [...actors.keys()].some((known) => known.startsWith('user:'))
  if (!isOfFleet && kind === 'user' && areMembersRead) return 'an operator or a former member'
  return id ? `${kind.replaceAll('_', ' ')} …${shortId(id)}` : kind || '–'
}

interface SubjectProps {
  event: Event
  projectId: string
  known: string | undefined
}

function Subject({ event, projectId, known }: SubjectProps) {
  const { resource_type, resource_id } = event
  const words = `${resourceWords(resource_type)} ${known ?? (resource_id && `…${shortId(resource_id)}`)}`
  if (event.resource_type !== 'vm' || !projectId) return <span title={event.resource_id}>{words}</span>
  return (
    <Link
      to="/projects/$projectId/vms/$vmId"
      params={{ projectId, vmId: event.resource_id }}
      className="hover:text-accent-text hover:underline"
    >
      {words}
    </Link>
  )
}
