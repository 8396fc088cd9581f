import { Popover } from '@base-ui/react/popover'
import type { Project } from '@slipway/sdk'
import { useLocation, useNavigate } from '@tanstack/react-router'
import { type ReactElement, useState } from 'react'
import { useMe, useProjectId } from '../api/me.ts'
import { CreateProject } from '../features/create-project.tsx'
import { lastProject } from '../lib/last-project.ts'
import { Finder } from '../ui/finder.tsx'
import { Icon } from '../ui/icon.tsx'
import { Menu } from '../ui/menu.tsx'

/** The list has a filter field if there are more projects. */
const maxWithoutFilter = 8

export function ProjectSwitcher() {
  const { caller, projects, organizations } = useMe()
  const projectId = useProjectId()
  const { pathname } = useLocation()
  const navigate = useNavigate()
  const [isCreating, setCreating] = useState(false)
  // Fleet pages do not belong to a project.
  const isFleet = caller.is_operator && pathname.startsWith('/fleet')
  const isAll = pathname === '/projects'
  const current = projects.find(({ id }) => id === (projectId || (isFleet || isAll ? '' : lastProject.get())))
  const organizationOf = ({ organization_id }: Project) =>
    organizations.find(({ id }) => id === organization_id)?.name ?? ''
  const open = ({ id }: Project) => void navigate({ to: '/projects/$projectId', params: { projectId: id } })
  const openAll = () => void navigate({ to: '/projects' })
  if (projects.length === 0) return null
  const trigger = (
    <button
      type="button"
      className="flex h-8 min-w-0 items-center gap-2 rounded-md border border-line px-2.5 hover:border-line-strong"
    >
      <span className="sr-only">Project </span>
      {isFleet && <Icon name="layout-grid" size={14} className="shrink-0 text-ink-muted" />}
      <span className="truncate font-medium">
        {isFleet ? 'Whole fleet' : isAll ? 'All projects' : (current?.name ?? 'Choose a project')}
      </span>
      <Icon name="chevrons-up-down" size={14} className="shrink-0 text-ink-muted" />
    </button>
  )
  return (
    <>
      {projects.length > maxWithoutFilter ? (
        <ManyProjects
          trigger={trigger}
          projects={projects}
          current={current}
          organizationOf={organizationOf}
          onOpen={open}
          onOpenAll={openAll}
          onCreate={() => setCreating(true)}
        />
      ) : (
        <Menu
          label="Project"
          align="start"
          trigger={trigger}
          entries={[
            ...projects.map((project) => ({
              key: project.id,
              label: <ProjectName project={project} organization={organizationOf(project)} />,
              isCurrent: project.id === current?.id,
              onSelect: () => open(project),
            })),
            ...(projects.length > 1
              ? [
                  {
                    key: 'all',
                    label: 'All projects',
                    icon: <Icon name="layout-grid" size={14} />,
                    hasSeparator: true,
                    onSelect: openAll,
                  },
                ]
              : []),
            {
              key: 'new',
              label: 'New project',
              icon: <Icon name="plus" size={14} />,
              hasSeparator: projects.length < 2,
              onSelect: () => setCreating(true),
            },
          ]}
        />
      )}
      <CreateProject isOpen={isCreating} onClose={() => setCreating(false)} />
    </>
  )
}

const ProjectName = ({ project, organization }: { project: Project; organization: string }) => (
  <span className="flex min-w-0 flex-wrap items-baseline gap-x-2">
    <span className="min-w-0 wrap-anywhere">{project.name}</span>
    <span className="text-sm font-normal text-ink-muted">{organization}</span>
  </span>
)

interface ManyProjectsProps {
  trigger: ReactElement
  projects: Project[]
  current: Project | undefined
  organizationOf: (project: Project) => string
  onOpen: (project: Project) => void
  onOpenAll: () => void
  onCreate: () => void
}

function ManyProjects({
  trigger,
  projects,
  current,
  organizationOf,
  onOpen,
  onOpenAll,
  onCreate,
}: ManyProjectsProps) {
  const [isOpen, setOpen] = useState(false)
  const [text, setText] = useState('')
  const wanted = text.trim().toLowerCase()
  const close = () => {
    setOpen(false)
    setText('')
  }
  return (
    <Popover.Root open={isOpen} onOpenChange={(opens) => (opens ? setOpen(true) : close())}>
      <Popover.Trigger render={trigger as ReactElement<Record<string, unknown>>} />
      <Popover.Portal>
        <Popover.Positioner sideOffset={6} align="start" className="z-50">
          <Popover.Popup
            aria-label="Project"
            className="w-80 max-w-[calc(100vw-16px)] overflow-hidden rounded-md border border-line-strong bg-surface shadow-float outline-none"
          >
            <Finder
              label="Find a project"
              placeholder="Find a project"
              text={text}
              onText={setText}
              hits={projects.filter((project) =>
                `${project.name} ${organizationOf(project)}`.toLowerCase().includes(wanted),
              )}
              keyOf={({ id }) => id}
              onOpen={(project) => {
                close()
                onOpen(project)
              }}
              empty="No matching projects."
            >
              {(project) => (
                <>
                  <ProjectName project={project} organization={organizationOf(project)} />
                  {project.id === current?.id && (
                    <Icon
                      name="check"
                      size={14}
                      aria-label="current"
                      className="ml-auto shrink-0 text-accent-text"
                    />
                  )}
                </>
              )}
            </Finder>
            {(
              [
                ['All projects', 'layout-grid', onOpenAll],
                ['New project', 'plus', onCreate],
              ] as const
            ).map(([title, icon, act]) => (
              <button
                key={title}
                type="button"
                className="flex h-10 w-full items-center gap-2 border-t border-line px-3 hover:bg-sunken"
                onClick={() => {
                  close()
                  act()
                }}
              >
                <Icon name={icon} size={14} /> {title}
              </button>
            ))}
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  )
}
