import { useProject, useProjectId } from '../api/me.ts'
import { useActorNames, useResourceNames } from '../api/resource-names.ts'
import {
  ActorFilter,
  operationStateOf,
  PeriodFilter,
  periodQuery,
  StateFilter,
  TypeFilter,
  typeQuery,
  useDebouncedText,
} from '../features/activity/filters.tsx'
import { EventTable } from '../features/event-table.tsx'
import { shortId } from '../lib/format.ts'
import { useSearchState } from '../lib/use-search-state.ts'
import { FilterInput } from '../ui/field.tsx'
import { Page } from '../ui/page.tsx'

const noFilter = { q: '', state: '', type: '', actor: '', resource: '', from: '', to: '' }

/** Everything that happened in the project: operations with their steps, and single events. */
export function Activity() {
  const projectId = useProjectId()
  const [search, setSearch] = useSearchState()
  const given = { ...noFilter, ...search }
  const { state, type, actor, resource, from, to } = given
  const q = useDebouncedText(given.q.trim())
  const actors = useActorNames(useProject())
  const resources = useResourceNames(projectId)
  const isFiltered = (Object.keys(noFilter) as (keyof typeof noFilter)[]).some((name) => given[name] !== '')
  return (
    <Page title="Activity" aside={<span className="text-sm text-ink-muted">kept for 90 days</span>} isWide>
      <div className="filter-bar">
        <FilterInput
          label="Search by resource name or ID"
          value={given.q}
          onChange={(q) => setSearch({ q })}
        />
        <StateFilter value={state} onChange={(state) => setSearch({ state })} />
        <span className="max-w-44">
          <TypeFilter value={type} onChange={(type) => setSearch({ type })} />
        </span>
        <ActorFilter value={actor} actors={actors} onChange={(actor) => setSearch({ actor })} />
        <PeriodFilter from={from} to={to} onChange={setSearch} />
        {resource && (
          <span className="text-sm text-ink-muted">
            Only {resources.get(resource) ?? `resource …${shortId(resource)}`}
          </span>
        )}
        {isFiltered && (
          <button type="button" className="link text-sm" onClick={() => setSearch(noFilter)}>
            Clear filters
          </button>
        )}
      </div>
      <EventTable
        projectId={projectId}
        resourceId={resource}
        actor={actor}
        type={typeQuery(type).type ?? ''}
        filter={{
          resource_type: typeQuery(type).resource_type,
          operation_state: operationStateOf(state),
          q: q || undefined,
          ...periodQuery(from, to),
        }}
        openRow={search.open ?? ''}
        onOpen={(open) => setSearch({ open })}
      />
    </Page>
  )
}
