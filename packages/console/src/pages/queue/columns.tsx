import type { CapacityRequest } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { plural, zonedTitle } from '../../lib/format.ts'
import { timestampColumn } from '../../ui/columns/time-column.tsx'
import { NoBreak } from '../../ui/no-break.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, noValue } from '../../ui/table.tsx'
import { Timestamp, Until } from '../../ui/time.tsx'

/** The VM or group that a request is waiting for. */
export interface WantedResource {
  name: string
  type?: string
  location?: string
}

export const openColumns = (
  wantedOf: (request: CapacityRequest) => WantedResource,
  open: CapacityRequest[],
): Column<CapacityRequest>[] => [
  {
    key: 'name',
    title: 'Waiting for',
    width: 'minmax(130px, 1.4fr)',
    cell: (request) => <span className="font-medium">{wantedOf(request).name}</span>,
  },
  {
    key: 'type',
    title: 'Type',
    width: 'minmax(120px, 1fr)',
    isFoldable: true,
    cell: (request) => <NoBreak>{wantedOf(request).type ?? plural(request.gpus_wanted, 'GPU')}</NoBreak>,
  },
  {
    key: 'location',
    title: 'Location',
    width: 'minmax(112px, 1fr)',
    isFoldable: true,
    cell: (request) => locationText(request, wantedOf(request)),
  },
  {
    key: 'state',
    title: 'State',
    width: open.some(isToClaim) ? 'minmax(116px, 1.6fr)' : '104px',
    cell: (request) => (
      <span className="inline-flex flex-wrap items-baseline gap-x-2">
        <StateBadge state={request.state} />
        {isToClaim(request) && (
          <span>
            claim within <Until iso={request.held_until} hasPreposition={false} />
          </span>
        )}
      </span>
    ),
  },
  // Held GPUs have no position, and the deadline for the claim replaces the other one.
  ...(open.some(({ state }) => state === 'waiting') ? waitingColumns : []),
]

/** Returns whether GPUs are held until the user claims them. */
const isToClaim = ({ state, held_until }: CapacityRequest) => state === 'held' && held_until !== ''

const waitingColumns: Column<CapacityRequest>[] = [
  {
    key: 'position',
    title: 'Position',
    width: '84px',
    align: 'right',
    cell: ({ state, position }) => position ?? (state === 'waiting' ? 'over 100' : noValue),
  },
  {
    key: 'estimate',
    title: 'Estimate',
    width: 'minmax(200px, 1.6fr)',
    isFoldable: true,
    cell: (request) => <Estimate request={request} />,
  },
  {
    key: 'until',
    title: zonedTitle('Waiting until'),
    width: 'minmax(132px, 1fr)',
    isFoldable: true,
    cell: ({ state, until }) => (state === 'held' ? noValue : <Timestamp iso={until} hasZone={false} />),
  },
]

/** Returns the location of the held GPUs, or the locations where the request is waiting. */
function locationText({ location, request }: CapacityRequest, wanted: WantedResource): string {
  const locations = request.locations as string[] | undefined
  return location || locations?.join(', ') || (wanted.location === 'any' ? 'any' : (wanted.location ?? '–'))
}

const blockedText: Record<string, string> = {
  quota: 'The quota is too low',
  budget: 'The budget is used up',
  payment: 'There is no valid payment method',
  suspended: 'The organization is suspended',
}

/** Shows when the request will probably be granted, or what blocks it. */
function Estimate({ request }: { request: CapacityRequest }) {
  const { state, blocked_by, held_until, estimate } = request
  if (state === 'held') return held_until ? noValue : 'now'
  if (blocked_by)
    return (
      <span
        className="text-amber-text"
        title="The request keeps its position in the queue. Other requests can be served first."
      >
        {blockedText[blocked_by] ?? blocked_by}
      </span>
    )
  if (!estimate.likely_at) return <span className="text-ink-muted">no estimate yet</span>
  if (estimate.basis === 'expiries') return <Until iso={estimate.likely_at} />
  return (
    <span>
      likely <Until iso={estimate.likely_at} />
      <span className="text-ink-muted">
        , at the latest <Until iso={estimate.latest_at} />
      </span>
    </span>
  )
}

export const endedColumns = (
  projectId: string,
  nameOf: (request: CapacityRequest) => string,
): Column<CapacityRequest>[] => [
  {
    key: 'name',
    title: 'Waited for',
    width: 'minmax(130px, 1fr)',
    cell: (request) => <WantedLink projectId={projectId} request={request} name={nameOf(request)} />,
  },
  { key: 'state', title: 'State', width: '120px', cell: ({ state }) => <StateBadge state={state} /> },
  {
    key: 'reason',
    title: 'Reason',
    width: 'minmax(160px, 2fr)',
    cell: ({ error }) => error?.message ?? noValue,
  },
  timestampColumn('Ended', 'updated_at'),
]

/** The name of the requested VM or group, with a link if it was created. */
function WantedLink({
  projectId,
  request,
  name,
}: {
  projectId: string
  request: CapacityRequest
  name: string
}) {
  const id = request.resource_id
  const className = 'font-medium hover:text-accent-text hover:underline'
  if (!id) return <span className="font-medium">{name}</span>
  return request.request.instance_group ? (
    <Link to="/projects/$projectId/groups/$groupId" params={{ projectId, groupId: id }} className={className}>
      {name}
    </Link>
  ) : (
    <Link to="/projects/$projectId/vms/$vmId" params={{ projectId, vmId: id }} className={className}>
      {name}
    </Link>
  )
}
