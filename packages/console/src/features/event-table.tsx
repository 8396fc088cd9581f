import type { Event } from '@slipway/sdk'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { client } from '../api/client.ts'
import { useProject } from '../api/me.ts'
import { useActorNames, useResourceNames } from '../api/resource-names.ts'
import { eventWords, resourceWords, shortId } from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { ErrorState } from '../ui/error.tsx'
import { Skeleton } from '../ui/page.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { whenColumn } from '../ui/time-column.tsx'

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
    queryKey: ['eventList', { projectId, resourceId, type, actor, limit }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.eventList(
        {
          project_id: projectId,
          limit,
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
      <EventRows rows={rows} projectId={projectId} actors={actors} />
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
  rows: Event[]
  actors: Map<string, string>
  projectId?: string
  /** Whether it is shown where each came from: admins may know. */
  hasAddresses?: boolean
}

export function EventRows({ rows, actors, projectId = '', hasAddresses = false }: EventRowsProps) {
  const living = useResourceNames(projectId)
  // Other events still know the name of what has been deleted.
  const told = rows.flatMap(({ resource_id, data }): [string, string][] =>
    typeof data.name === 'string' ? [[resource_id, data.name]] : [],
  )
  const columns = columnsFor(projectId, new Map([...told, ...living]), actors)
  if (hasAddresses) columns.splice(-1, 0, addressColumn)
  return <Table label="Events" rows={rows} columns={columns} rowKey={(event) => event.id} />
}

const columnsFor = (
  projectId: string,
  names: Map<string, string>,
  actors: Map<string, string>,
): Column<Event>[] => [
  {
    key: 'what',
    title: 'What',
    width: 'minmax(180px, 1.4fr)',
    cell: (event) => <span title={event.type}>{eventWords(event)}</span>,
  },
  {
    key: 'on',
    title: 'On',
    width: 'minmax(160px, 1.2fr)',
    cell: (event) => <Subject event={event} projectId={projectId} known={names.get(event.resource_id)} />,
  },
  {
    key: 'by',
    title: 'By',
    width: 'minmax(140px, 1fr)',
    cell: (event) => <span title={event.actor}>{actors.get(event.actor) ?? actorWords(event.actor)}</span>,
  },
  whenColumn('When', 'created_at'),
]

const addressColumn: Column<Event> = {
  key: 'address',
  title: 'From',
  width: 'minmax(110px, 1fr)',
  cell: ({ client_address }) => client_address || <span className="text-ink-muted">–</span>,
}

const actorWords = (actor: string): string => {
  const [kind = '', id = ''] = actor.split(':')
  return id ? `${kind.replaceAll('_', ' ')} …${shortId(id)}` : kind || '–'
}

interface SubjectProps {
  event: Event
  projectId: string
  known: string | undefined
}

function Subject({ event, projectId, known }: SubjectProps) {
  const words = `${resourceWords(event.resource_type)} ${known ?? `…${shortId(event.resource_id)}`}`
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
