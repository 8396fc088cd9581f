import type { Operation, Vm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { useNow } from '../../lib/clock.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Section } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Ago } from '../../ui/time.tsx'

const shownMs = 24 * 3_600_000

interface Request {
  name: string
  type: string
  location: string
}
const requestOf = ({ metadata }: Operation) => metadata.request as unknown as Request

/** The creations that failed in the last 24 hours, unless a VM with the requested name exists now. */
export function FailedCreations({ projectId, vms }: { projectId: string; vms: Vm[] }) {
  const now = useNow()
  const failed = useQuery(
    read('operationList', { params: { project_id: projectId }, query: { state: 'FAILED', limit: 100 } }),
  )
  const names = new Set(vms.map(({ name }) => name))
  const shown = (failed.data?.items ?? []).filter(
    (operation) =>
      operation.metadata.operation_name === 'CREATE' &&
      operation.metadata.type === 'vm' &&
      resultOf(operation).code !== 'cancelled' &&
      now - Date.parse(operation.completed_at) < shownMs &&
      !names.has(requestOf(operation).name),
  )
  if (shown.length === 0) return null
  return (
    <Section
      title="Failed creations"
      about="From the last 24 hours. Everything was cleaned up, and nothing is billed."
    >
      <ul className="card divide-y divide-line">
        {shown.map((operation) => {
          const { name, type, location } = requestOf(operation)
          return (
            <li
              key={operation.operation_id}
              className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2"
            >
              <span className="min-w-0 flex-1 basis-72">
                <span className="flex flex-wrap items-center gap-x-3">
                  <Link
                    to="/projects/$projectId/vms/$vmId"
                    params={{ projectId, vmId: operation.metadata.id }}
                    className="font-medium hover:text-accent-text hover:underline"
                  >
                    {name}
                  </Link>
                  <StateBadge state="FAILED" />
                  <span className="text-sm text-ink-muted">
                    {type} in {location}, <Ago iso={operation.completed_at} />
                  </span>
                </span>
                <span className="block text-sm break-words text-red-text">{resultOf(operation).message}</span>
              </span>
              <ButtonLink
                size="small"
                to="/projects/$projectId/vms/new"
                params={{ projectId }}
                search={{ from: operation.operation_id }}
              >
                Create again
              </ButtonLink>
            </li>
          )
        })}
      </ul>
    </Section>
  )
}

const resultOf = ({ result }: Operation) => (result ?? {}) as { code?: string; message?: string }
