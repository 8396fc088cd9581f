import { useProjectId } from '../api/me.ts'
import { EventTable } from '../features/event-table.tsx'
import { EventTabs } from '../features/page-tabs.tsx'
import { projectEventTypes as types } from '../lib/event-kinds.ts'
import { eventTypeText } from '../lib/format.ts'
import { useSearchState } from '../lib/use-search-state.ts'
import { Select } from '../ui/field.tsx'
import { Page } from '../ui/page.tsx'

/** The audit log of the project. */
export function Events() {
  const projectId = useProjectId()
  const [search, setSearch] = useSearchState()
  const known = search.type && !types.includes(search.type) ? [search.type, ...types] : types
  return (
    <Page title="Events" isWide>
      <EventTabs />
      <div className="flex flex-wrap items-center gap-2">
        <Select
          isSmall
          label="Type"
          value={search.type ?? ''}
          onChange={(type) => setSearch({ type })}
          choices={[
            { value: '', label: 'Any event' },
            ...known.map((value) => ({ value, label: eventTypeText(value) })),
          ]}
        />
        {(search.resource || search.actor) && (
          <button
            type="button"
            className="link text-sm"
            onClick={() => setSearch({ resource: '', actor: '' })}
          >
            Clear filter
          </button>
        )}
        <span className="ml-auto text-sm text-ink-muted">Kept for 90 days</span>
      </div>
      <EventTable
        projectId={projectId}
        type={search.type ?? ''}
        resourceId={search.resource ?? ''}
        actor={search.actor ?? ''}
      />
    </Page>
  )
}
