import { Combobox } from '@base-ui/react/combobox'
import type { RouteResponse } from '@slipway/sdk'
import { Icon } from '../../ui/icon.tsx'

export type AdminProject = RouteResponse<'adminProjectList'>['items'][number]

/** Users filter longer lists by typing. */
const maxShown = 50

export const projectText = (project: AdminProject): string => `${project.organization_name} / ${project.name}`

/** Finds a project of any organization by the name of the project or the organization. */
export function ProjectPicker({
  projects,
  value,
  onChange,
}: {
  projects: AdminProject[]
  value: AdminProject | null
  onChange: (project: AdminProject) => void
}) {
  return (
    <Combobox.Root
      items={projects}
      value={value}
      onValueChange={(project) => project && onChange(project)}
      itemToStringLabel={projectText}
      isItemEqualToValue={(a, b) => a.id === b.id}
      limit={maxShown}
      autoHighlight
    >
      <div className="relative w-full">
        <Combobox.Input
          aria-label="Project"
          placeholder="Organization or project"
          className="h-8 w-full rounded-md border border-line-strong bg-surface pr-8 pl-2.5"
        />
        <Combobox.Trigger
          aria-label="Show projects"
          className="absolute inset-y-0 right-0 flex w-8 items-center justify-center text-ink-muted"
        >
          <Icon name="chevron-down" size={14} />
        </Combobox.Trigger>
      </div>
      <Combobox.Portal>
        <Combobox.Positioner sideOffset={4} className="z-50">
          <Combobox.Popup className="w-(--anchor-width) rounded-md border border-line-strong bg-surface shadow-float">
            <Combobox.Empty className="px-3 py-2 text-ink-muted empty:hidden">
              No matching projects.
            </Combobox.Empty>
            <Combobox.List className="max-h-80 overflow-y-auto p-1 empty:hidden">
              {(project: AdminProject) => (
                <Combobox.Item
                  key={project.id}
                  value={project}
                  className="flex h-8 cursor-default items-center gap-2 rounded-[4px] px-2 data-highlighted:bg-sunken"
                >
                  <span className="truncate">{project.name}</span>
                  <span className="truncate text-ink-muted">{project.organization_name}</span>
                </Combobox.Item>
              )}
            </Combobox.List>
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  )
}
