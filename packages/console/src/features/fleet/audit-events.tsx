import { useInfiniteQuery } from '@tanstack/react-query'
import { client } from '../../api/client.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { Loaded } from '../../ui/loaded.tsx'
import { systemActor } from '../activity/actor.tsx'
import { EventRows, type ListedEvent, OlderEvents, type Tenant } from '../event-table.tsx'
import { projectText } from './project-picker.tsx'

const rarelyChangesMs = 60_000

/** Reads the users, projects and organizations that events refer to. */
export function useFleetNames() {
  const users = useQuery({ ...readAll('adminUserList', {}), staleTime: rarelyChangesMs })
  const projects = useQuery({ ...readAll('adminProjectList', {}), staleTime: rarelyChangesMs })
  const organizations = useQuery({ ...readAll('adminOrganizationList', {}), staleTime: rarelyChangesMs })
  const actors = new Map([
    ...(users.data ?? []).map(({ id, email }) => [`user:${id}`, email] as const),
    ['system', systemActor],
  ])
  const tenants = new Map([
    ...(projects.data ?? []).map((each) => [each.id, projectText(each)] as const),
    ...(organizations.data ?? []).map(({ id, name }) => [id, name] as const),
  ])
  const names = new Map([...tenants, ...(users.data ?? []).map(({ id, email }) => [id, email] as const)])
  return { projects: projects.data ?? [], organizations: organizations.data ?? [], actors, tenants, names }
}

interface AuditEventsProps {
  type?: string
  actor?: string
  project?: string
  organization?: string
  resource?: string
  /** Limits the list to a period. */
  start?: string | undefined
  end?: string | undefined
  limit?: number
  /** Shows the resource and the tenant of each event, which are the same for all events on a resource's page. */
  hasResources?: boolean
  openRow?: string
  onOpen?: (row: string) => void
}

/** The events of all tenants and operators that match the filters. */
export function AuditEvents({ limit = 100, openRow, onOpen, ...given }: AuditEventsProps) {
  const { hasResources = !given.resource, ...filter } = given
  const { type, actor, project, organization, resource, start, end } = filter
  const { projects, actors, tenants, names } = useFleetNames()
  const events = useInfiniteQuery({
    queryKey: ['adminEventList', { ...filter, limit }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.adminEventList(
        {
          limit,
          page_token: pageParam || undefined,
          type: type || undefined,
          actor: actor || undefined,
          project_id: project || undefined,
          organization_id: organization || undefined,
          resource_id: resource || undefined,
          start,
          end,
        },
        { signal },
      ),
    getNextPageParam: (page) => page.next_page_token || undefined,
    // Each read is recorded in the audit log of every tenant shown, so the list does not poll.
    refetchInterval: false,
  })
  const tenantOf = ({ project_id = '', organization_id = '', resource_id }: ListedEvent): Tenant => {
    // If an operator viewed an organization, the event's resource is the organization, and no other field names it.
    const id = [project_id, organization_id, resource_id].find((each) => tenants.has(each)) ?? ''
    const project = projects.find((each) => each.id === id)
    return { organizationId: project?.organization_id ?? id, text: tenants.get(id) ?? '' }
  }
  return (
    <>
      <Loaded query={events}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items)
          if (rows.length === 0)
            return <p className="card px-4 py-3 text-ink-muted">No matching events in the last 90 days.</p>
          return (
            <EventRows
              rows={rows}
              hasOlder={events.hasNextPage}
              actors={actors}
              isFleet
              tenantOf={hasResources ? tenantOf : undefined}
              names={names}
              // Next to the tenants, there is no space for durations. The times of all events are shown on hover.
              omit={[hasResources ? 'took' : 'on', ...(actor ? (['by'] as const) : [])]}
              hasAddresses
              openRow={openRow}
              onOpen={onOpen}
            />
          )
        }}
      </Loaded>
      <OlderEvents query={events} />
    </>
  )
}
