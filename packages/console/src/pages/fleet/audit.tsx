import { eventTypes } from '@slipway/contract/event-types'
import { keepPreviousData } from '@tanstack/react-query'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { ActorFilter, PeriodFilter, periodQuery, useDebouncedText } from '../../features/activity/filters.tsx'
import { AuditEvents, useFleetNames } from '../../features/fleet/audit-events.tsx'
import { projectText } from '../../features/fleet/project-picker.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { eventTypeText, resourceText } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { FilterInput, Select } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'

const isUuid = (text: string) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)

/** The audit log of all tenants and operators. */
export function Audit() {
  const [search, setSearch] = useSearchState()
  const { type = '', actor = '', project = '', organization = '', resource = '', from = '', to = '' } = search
  const { projects, organizations, actors } = useFleetNames()
  const hasTenant = project !== '' || organization !== ''
  return (
    <FleetPage aside={<span className="text-sm text-ink-muted">kept for 90 days</span>}>
      <div className="filter-bar">
        <FilterInput
          label="Search by resource name or ID"
          value={resource}
          onChange={(resource) => setSearch({ resource: resource.trim() })}
        />
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
            ...organizations.map(({ id, name }) => ({
              value: `organization ${id}`,
              label: `${name} (organization only)`,
            })),
            ...projects.map((each) => ({
              value: `project ${each.id}`,
              label: projectText(each),
            })),
          ]}
        />
        <span className="max-w-44">
          <Select
            isSmall
            label="Type"
            value={type}
            onChange={(type) => setSearch({ type })}
            choices={[
              { value: '', label: 'Any event' },
              ...eventTypes.map((value) => ({ value, label: eventTypeText(value) })),
            ]}
          />
        </span>
        <ActorFilter value={actor} actors={actors} onChange={(actor) => setSearch({ actor })} />
        <PeriodFilter from={from} to={to} onChange={setSearch} />
        {(type || actor || hasTenant || resource || from || to) && (
          <button
            type="button"
            className="link text-sm"
            onClick={() =>
              setSearch({
                type: '',
                actor: '',
                project: '',
                organization: '',
                resource: '',
                from: '',
                to: '',
              })
            }
          >
            Clear filters
          </button>
        )}
      </div>
      {resource && !isUuid(resource) ? (
        <FoundResources text={resource} onChoose={(resource) => setSearch({ resource })} />
      ) : (
        <AuditEvents
          {...{ type, actor, project, organization, resource, ...periodQuery(from, to) }}
          hasResources
          openRow={search.open ?? ''}
          onOpen={(open) => setSearch({ open })}
        />
      )}
    </FleetPage>
  )
}

/** The resources with this name. The audit log is searched by ID, because names can be used again. */
function FoundResources({ text, onChoose }: { text: string; onChoose: (id: string) => void }) {
  const q = useDebouncedText(text)
  const found = useQuery({ ...read('adminSearch', { query: { q } }), placeholderData: keepPreviousData })
  return (
    <Loaded query={found} rows={2}>
      {({ items }) =>
        items.length === 0 ? (
          <p className="card px-4 py-3 text-ink-muted">
            No resource has this name. Deleted resources are found only by their whole ID.
          </p>
        ) : (
          <ul aria-label="Resources" className="card px-4 py-2">
            {items.map(({ resource_type, resource_id, name, organization_name, project_name }) => (
              <li key={resource_id} className="py-1">
                {resourceText(resource_type)}{' '}
                <button type="button" className="link" onClick={() => onChoose(resource_id)}>
                  {name}
                </button>{' '}
                <span className="text-ink-muted">
                  {[organization_name, project_name].filter(Boolean).join(' / ')}
                </span>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}
