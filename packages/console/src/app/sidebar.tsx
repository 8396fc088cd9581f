import { Link, type LinkProps, useLocation } from '@tanstack/react-router'
import { useMe, useProjectId } from '../api/me.ts'
import { lastProject } from '../lib/last-project.ts'
import { Icon, type IconName } from '../ui/icon.tsx'

interface Entry {
  label: string
  to: string
  icon: IconName
  isExact?: boolean
  /** The entry is also current on pages under these paths. */
  under?: string[]
}

export function Sidebar() {
  const projectId = useProjectId()
  const { caller, projects } = useMe()
  const isFleet = useLocation().pathname.startsWith('/fleet') && caller.is_operator
  const project = projects.find(({ id }) => id === (projectId || lastProject.get())) ?? projects[0]
  const base = `/projects/${project?.id}`
  const entries: Entry[] = project
    ? [
        { label: 'Overview', to: base, icon: 'gauge', isExact: true },
        {
          label: 'VMs',
          to: `${base}/vms`,
          under: [`${base}/groups`, `${base}/templates`, `${base}/queue`],
          icon: 'server',
        },
        { label: 'Disks', to: `${base}/disks`, icon: 'hard-drive' },
        { label: 'Network', to: `${base}/network/firewall`, under: [`${base}/network`], icon: 'network' },
        { label: 'Usage', to: `${base}/usage`, icon: 'chart-column' },
        { label: 'Activity', to: `${base}/activity`, icon: 'activity' },
        { label: 'Settings', to: `${base}/settings/keys`, under: [`${base}/settings`], icon: 'settings' },
      ]
    : []
  return (
    <nav aria-label="Main" className="flex flex-col gap-0.5 p-3">
      {isFleet && project && (
        // The header shows no project name on fleet pages.
        <p className="truncate px-2 pb-1 text-sm text-ink-muted">{project.name}</p>
      )}
      {entries.map((entry) => (
        <SidebarLink key={entry.label} {...entry} />
      ))}
      {caller.is_operator && (
        <>
          {entries.length > 0 && <hr className="my-2 border-line" />}
          <SidebarLink label="Fleet" to="/fleet" icon={'layout-grid'} />
        </>
      )}
    </nav>
  )
}

function SidebarLink({ label, to, icon, isExact = false, under = [] }: Entry) {
  const isUnder = under.some((path) => location.pathname.startsWith(path))
  return (
    <Link
      {...({ to } as LinkProps)}
      activeOptions={{ exact: isExact, includeSearch: false }}
      aria-current={isUnder ? 'page' : undefined}
      className="flex h-8 items-center gap-2.5 rounded-md px-2 text-ink-muted hover:bg-sunken hover:text-ink aria-[current=page]:bg-sunken aria-[current=page]:font-medium aria-[current=page]:text-ink"
    >
      <Icon name={icon} size={16} />
      {label}
    </Link>
  )
}
