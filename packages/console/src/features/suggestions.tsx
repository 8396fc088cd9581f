import type { Suggestion } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { money } from '../lib/format.ts'
import { Section } from '../ui/page.tsx'

const shownCount = 5

/** Lists unused resources that cost money. Renders nothing if there are none. */
export function Suggestions({ projectId }: { projectId: string }) {
  const found = useQuery({
    ...read('suggestionList', { params: { project_id: projectId } }),
    staleTime: 60_000,
  })
  const items = found.data?.items ?? []
  if (items.length === 0) return null
  const total = items.reduce((sum, { usd_per_month }) => sum + usd_per_month, 0)
  return (
    <Section title="Suggestions" about={`Unused resources cost ${money(total)} per month.`}>
      <ul className="card divide-y divide-line">
        {items.slice(0, shownCount).map((item) => (
          <li key={item.resource_id} className="flex flex-wrap items-baseline gap-x-4 gap-y-1 px-4 py-2">
            <span className="min-w-0 flex-1 basis-72">
              <ResourceLink projectId={projectId} item={item} />
              <span className="block text-sm break-words text-ink-muted">{item.message}</span>
            </span>
            <span className="figures whitespace-nowrap">{money(item.usd_per_month)} per month</span>
          </li>
        ))}
        {items.length > shownCount && (
          <li className="px-4 py-2 text-sm text-ink-muted">
            {items.length - shownCount} more: run <code>slipway suggestions</code>
          </li>
        )}
      </ul>
    </Section>
  )
}

function ResourceLink({ projectId, item }: { projectId: string; item: Suggestion }) {
  const look = 'font-medium hover:text-accent-text hover:underline'
  return item.kind === 'idle_vm' ? (
    <Link
      to="/projects/$projectId/vms/$vmId/metrics"
      params={{ projectId, vmId: item.resource_id }}
      search={{ range: '24h' }}
      className={look}
    >
      {item.name}
    </Link>
  ) : (
    <Link to="/projects/$projectId/disks" params={{ projectId }} search={{ q: item.name }} className={look}>
      {item.name}
    </Link>
  )
}
