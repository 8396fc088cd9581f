import { useProject, useProjectId } from '../api/me.ts'
import { useActorNames, useResourceNames } from '../api/resource-names.ts'
import { EventTable } from '../features/event-table.tsx'
import { EventTabs } from '../features/page-tabs.tsx'
import { projectEventKinds, projectEventTypes as types } from '../lib/event-kinds.ts'
import { eventTypeText, shortId } from '../lib/format.ts'
import { useSearchState } from '../lib/use-search-state.ts'
import { Select } from '../ui/field.tsx'
import { Page } from '../ui/page.tsx'

/** The audit log of the project. */
export function Events() {
  const projectId = useProjectId()
  const [search, setSearch] = useSearchState()
  const actors = useActorNames(useProject())
  const resources = useResourceNames(projectId)
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
            ...(search.type && !types.includes(search.type)
              ? [{ value: search.type, label: eventTypeText(search.type) }]
              : []),
            ...projectEventKinds.flatMap(({ words, types }) =>
              types.map((value) => ({ value, label: eventTypeText(value), group: words })),
            ),
          ]}
        />
        <Select
          isSmall
          label="Actor"
          value={search.actor ?? ''}
          onChange={(actor) => setSearch({ actor })}
          choices={[
            { value: '', label: 'Anyone' },
            ...[...actors].map(([value, label]) => ({ value, label })),
            ...(search.actor && !actors.has(search.actor)
              ? [{ value: search.actor, label: search.actor }]
              : []),
          ]}
        />
        <Select
          isSmall
          label="Resource"
          value={search.resource ?? ''}
          onChange={(resource) => setSearch({ resource })}
          choices={[
            { value: '', label: 'Any resource' },
            ...[...resources].map(([value, label]) => ({ value, label })),
            ...(search.resource && !resources.has(search.resource)
              ? [{ value: search.resource, label: `…${shortId(search.resource)}` }]
              : []),
          ]}
        />
        {(search.type || search.resource || search.actor) && (
          <button
            type="button"
            className="link text-sm"
            onClick={() => setSearch({ type: '', resource: '', actor: '' })}
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
