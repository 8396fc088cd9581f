import { eventTypes } from '@slipway/contract/event-types'
import { useInfiniteQuery } from '@tanstack/react-query'
import { client } from '../../api/client.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { EventRows, systemActor } from '../../features/event-table.tsx'
import { projectText } from '../../features/fleet/project-picker.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { eventTypeText } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Button } from '../../ui/button.tsx'
import { Select } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'

const rarelyChangesMs = 60_000

/** The audit log of all tenants and operators. */
export function Audit() {
  const [search, setSearch] = useSearchState()
  const { type = '', actor = '', project = '', organization = '' } = search
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
  const isOfTenant = project !== '' || organization !== ''
  const events = useInfiniteQuery({
    queryKey: ['adminEventList', { type, actor, project, organization }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.adminEventList(
        {
          limit: 100,
          page_token: pageParam || undefined,
          type: type || undefined,
          actor: actor || undefined,
          project_id: project || undefined,
          organization_id: organization || undefined,
        },
        { signal },
      ),
    getNextPageParam: (page) => page.next_page_token || undefined,
    // Each read is recorded for every tenant that it shows, so the list does not poll.
    refetchInterval: false,
  })
  return (
    <FleetPage>
      <div className="flex flex-wrap items-center gap-2">
        <Select
          isSmall
          label="Tenant"
          value={project ? `project ${project}` : organization ? `organization ${organization}` : ''}
          onChange={(value) => {
            const [kind = '', id = ''] = value.split(' ')
            setSearch({ project: '', organization: '', ...(kind && { [kind]: id }) })
          }}
          choices={[
            { value: '', label: 'Any tenant' },
            ...(organizations.data ?? []).map(({ id, name }) => ({
              value: `organization ${id}`,
              label: `${name} (organization only)`,
            })),
            ...(projects.data ?? []).map((each) => ({
              value: `project ${each.id}`,
              label: projectText(each),
            })),
          ]}
        />
        <Select
          isSmall
          label="Type"
          value={type}
          onChange={(type) => setSearch({ type })}
          choices={[
            { value: '', label: 'Any type' },
            ...eventTypes.map((value) => ({ value, label: eventTypeText(value) })),
          ]}
        />
        <Select
          isSmall
          label="Actor"
          value={actor}
          onChange={(actor) => setSearch({ actor })}
          choices={[
            { value: '', label: 'Any actor' },
            ...[...actors].map(([value, label]) => ({ value, label })),
          ]}
        />
        {(type || actor || isOfTenant) && (
          <button
            type="button"
            className="link text-sm"
            onClick={() => setSearch({ type: '', actor: '', project: '', organization: '' })}
          >
            Clear filter
          </button>
        )}
        <span className="ml-auto text-sm text-ink-muted">Kept for 90 days</span>
      </div>
      <Loaded query={events}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items)
          if (rows.length === 0)
            return <p className="card px-4 py-3 text-ink-muted">No matching events in the last 90 days.</p>
          return (
            <EventRows
              rows={rows}
              actors={actors}
              tenantOf={({ project_id = '', organization_id = '' }) =>
                tenants.get(project_id) ?? tenants.get(organization_id) ?? ''
              }
              names={names}
              hasAddresses
            />
          )
        }}
      </Loaded>
      {events.hasNextPage && (
        <div>
          <Button isBusy={events.isFetchingNextPage} onClick={() => events.fetchNextPage()}>
            Older events
          </Button>
        </div>
      )}
    </FleetPage>
  )
}
