import type { ListItem } from '@slipway/sdk'
import { useQueries } from '@tanstack/react-query'
import { read, readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { countColumn, nameColumn } from '../../../features/fleet/columns.tsx'
import { fleetPollMs, recordedPollMs } from '../../../features/fleet/poll.ts'
import { projectText } from '../../../features/fleet/project-picker.tsx'
import { FleetPage } from '../../../features/page-tabs.tsx'
import { shortId } from '../../../lib/format.ts'
import { useSearchState } from '../../../lib/use-search-state.ts'
import { ageColumn } from '../../../ui/columns/time-column.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { NoBreak } from '../../../ui/no-break.tsx'
import { Section } from '../../../ui/page.tsx'
import { StateBadge } from '../../../ui/state.tsx'
import { type Column, noValue, Table } from '../../../ui/table.tsx'
import { Age, Until } from '../../../ui/time.tsx'
import { type Queue, queuesOf } from './queues.ts'

type Request = ListItem<'adminCapacityRequestList'>

/** The queues by GPU family and location, and the requests in them. */
export function FleetQueue() {
  const [search, setSearch] = useSearchState()
  const requests = useQuery({ ...readAll('adminCapacityRequestList', {}), refetchInterval: recordedPollMs })
  const projects = useQuery(readAll('adminProjectList', {}))
  const queues = useQueues()
  const nameOf = ({ project_id }: Request) => {
    const project = projects.data?.find(({ id }) => id === project_id)
    return project ? projectText(project) : `…${shortId(project_id)}`
  }
  const queue = queues.find(
    ({ family, location }) => family === search.family && location === search.location,
  )
  const shown = (data: Request[]) =>
    (queue ? data.filter(({ id }) => queue.requestIds.has(id)) : data).toSorted(
      (a, b) => a.family.localeCompare(b.family) || (a.position ?? 101) - (b.position ?? 101),
    )
  return (
    <FleetPage>
      <Section
        title="Queues"
        about="Each GPU family has a queue in each location. A request can wait in several queues."
      >
        {queues.length === 0 ? (
          <p className="card px-4 py-3 text-ink-muted">No requests are waiting for GPUs.</p>
        ) : (
          <Table
            label="Queues"
            rows={queues}
            rowKey={({ family, location }) => `${family} ${location}`}
            columns={queueColumns((chosen) => setSearch(chosen))}
          />
        )}
      </Section>
      <Section
        title={queue ? `Requests for ${queue.family} in ${queue.location}` : 'Requests'}
        actions={
          queue && (
            <button type="button" className="link" onClick={() => setSearch({ family: '', location: '' })}>
              Show all
            </button>
          )
        }
      >
        <Loaded query={requests} rows={6}>
          {(data) => (
            <Table
              label="Requests"
              rows={shown(data)}
              rowKey={({ id }) => id}
              columns={requestColumns(nameOf)}
              empty={<p className="card px-4 py-3 text-ink-muted">No open requests.</p>}
            />
          )}
        </Loaded>
      </Section>
    </FleetPage>
  )
}

/** Reads the requests by location, because a request can wait in several locations. */
function useQueues(): Queue[] {
  const capacity = useQuery({ ...read('adminCapacityList', {}), refetchInterval: fleetPollMs })
  const locations = [...new Set((capacity.data?.items ?? []).map(({ location }) => location))]
  const open = useQueries({
    queries: locations.map((location) => ({
      ...readAll('adminCapacityRequestList', { location }),
      refetchInterval: recordedPollMs,
    })),
  })
  return locations.flatMap((location, index) =>
    queuesOf(location, open[index]?.data ?? [], capacity.data?.items ?? []),
  )
}

const queueColumns = (onShow: (queue: { family: string; location: string }) => void): Column<Queue>[] => [
  nameColumn('Family', ({ family, location }) => (
    <button
      type="button"
      className="hover:text-accent-text hover:underline"
      title={`Show requests for ${family} in ${location}`}
      onClick={() => onShow({ family, location })}
    >
      {family}
    </button>
  )),
  {
    key: 'location',
    title: 'Location',
    width: 'minmax(112px, 1fr)',
    isInTitle: true,
    cell: ({ location }) => location,
  },
  countColumn('Waiting', ({ requestIds }) => requestIds.size),
  countColumn('GPUs wanted', ({ gpus }) => gpus, '120px'),
  countColumn('Free GPUs', ({ free }) => free, '100px'),
  { ...countColumn('Held GPUs', ({ held }: Queue) => held, '100px'), isFoldable: true },
  {
    key: 'next',
    title: 'Next grant',
    width: 'minmax(110px, 1fr)',
    isFoldable: true,
    cell: ({ nextAt }) =>
      nextAt ? <Until iso={nextAt} /> : <span className="text-ink-muted">no estimate</span>,
  },
  {
    key: 'longest',
    title: 'Longest wait',
    width: '120px',
    align: 'right',
    cell: ({ oldestAt }) => <Age iso={oldestAt} />,
  },
]

const requestColumns = (tenantOf: (row: Request) => string): Column<Request>[] => [
  { ...nameColumn('Project', tenantOf), width: 'minmax(140px, 1.4fr)' },
  { key: 'what', title: 'Waiting for', width: 'minmax(116px, 1fr)', cell: wantedOf },
  {
    key: 'location',
    title: 'Location',
    width: 'minmax(112px, 1fr)',
    cell: (row) => <NoBreak>{locationOf(row)}</NoBreak>,
  },
  { key: 'state', title: 'State', width: '112px', cell: (row) => <StateBadge state={row.state} /> },
  countColumn('Position', (row) => row.position ?? noValue),
  { ...countColumn('GPUs', (row: Request) => row.gpus_wanted, '60px'), isFoldable: true },
  { ...countColumn('Held', (row: Request) => row.gpus_held, '60px'), isFoldable: true },
  {
    key: 'likely',
    title: 'Expected',
    width: 'minmax(160px, 1fr)',
    isFoldable: true,
    cell: ({ state, held_until, estimate }) =>
      state === 'held' && held_until ? (
        <span>
          Claim within <Until iso={held_until} hasPreposition={false} />
        </span>
      ) : state === 'held' ? (
        'now'
      ) : estimate.likely_at ? (
        <Until iso={estimate.likely_at} />
      ) : (
        <span className="text-ink-muted">no estimate</span>
      ),
  },
  {
    key: 'blocked',
    title: 'Blocked by',
    width: '96px',
    isFoldable: true,
    cell: (row) => row.blocked_by || noValue,
  },
  { ...ageColumn, width: '96px' },
]

/** Returns the location of the held GPUs, or the locations where the request is waiting. */
function locationOf({ location, request }: Request): string {
  const { locations, vm } = request as { locations?: string[]; vm?: { location?: string } }
  return location || locations?.join(', ') || vm?.location || noValue
}

/** Returns the VM type that a request is waiting for. The type of a stopped VM is not in the request. */
function wantedOf({ family, request }: Request): string {
  const { type } = (request.vm ?? {}) as { type?: string }
  return type ?? `a stopped ${family} VM`
}
