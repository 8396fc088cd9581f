import { eventTypes } from '@slipway/contract/event-types'
import { ActorFilter, PeriodFilter, periodQuery } from '../../features/activity/filters.tsx'
import { AuditEvents, useFleetNames } from '../../features/fleet/audit-events.tsx'
import { projectText } from '../../features/fleet/project-picker.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { eventTypeText } from '../../lib/format.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { Select } from '../../ui/field.tsx'

/** The audit log of all tenants and operators. */
export function Audit() {
  const [search, setSearch] = useSearchState()
  const { type = '', actor = '', project = '', organization = '', from = '', to = '' } = search
  const { projects, organizations, actors } = useFleetNames()
  const hasTenant = project !== '' || organization !== ''
  return (
    <FleetPage aside={<span className="text-sm text-ink-muted">kept for 90 days</span>}>
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
        {(type || actor || hasTenant || from || to) && (
          <button
            type="button"
            className="link text-sm"
            onClick={() =>
              setSearch({ type: '', actor: '', project: '', organization: '', from: '', to: '' })
            }
          >
            Clear filters
          </button>
        )}
      </div>
      <AuditEvents {...{ type, actor, project, organization, ...periodQuery(from, to) }} />
    </FleetPage>
  )
}
