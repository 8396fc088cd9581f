import { eventTypes } from '@slipway/contract/event-types'
import { ActorFilter, PeriodFilter, periodQuery } from '../../features/activity/filters.tsx'
import { AuditEvents, useFleetNames } from '../../features/fleet/audit-events.tsx'
import { projectText } from '../../features/fleet/project-picker.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { eventTypeText } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { FilterInput, Select } from '../../ui/field.tsx'

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
          label="ID of a resource"
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
        <p className="card px-4 py-3 text-ink-muted">Enter the whole ID of the resource.</p>
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
