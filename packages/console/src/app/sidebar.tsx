import { Link, type LinkProps, useLocation } from '@tanstack/react-router'
import { useMe, useProjectId } from '../api/me.ts'
import { fleetPages } from '../lib/destinations.ts'
import { lastProject } from '../lib/last-project.ts'
import { Icon, type IconName } from '../ui/icon.tsx'

interface Entry {
  label: string
  to: string
  /** Entries without an icon are indented, below an entry with one. */
  icon?: IconName
  isExact?: boolean
  /** The entry is also current on pages under these paths. */
  under?: string[]
  /** True if the entry has no background when it is current. */
  isPlain?: boolean
}

export function Sidebar() {
  const projectId = useProjectId()
  const { caller, projects } = useMe()
  const isFleet = useLocation().pathname.startsWith('/fleet') && caller.is_operator
  // If the user may not see the project of the URL, the pages of another project would be misleading.
  const project = projectId
    ? projects.find(({ id }) => id === projectId)
    : (projects.find(({ id }) => id === lastProject.get()) ?? projects[0])
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
        {
          label: 'Disks',
          to: `${base}/disks`,
          under: [`${base}/snapshots`, `${base}/images`],
          icon: 'hard-drive',
        },
        { label: 'Network', to: `${base}/network/firewall`, under: [`${base}/network`], icon: 'network' },
        { label: 'Usage', to: `${base}/usage`, icon: 'chart-column' },
        { label: 'Activity', to: `${base}/activity`, icon: 'activity' },
        { label: 'Settings', to: `${base}/settings/keys`, under: [`${base}/settings`], icon: 'settings' },
      ]
    : projectId
      ? [{ label: 'All projects', to: '/projects', icon: 'layout-grid', isExact: true }]
      : []
  return (
    <>
      <nav aria-label="Main" className="flex flex-col gap-0.5 p-3">
        {/* Says which project the links open on pages that belong to no project. */}
        {!projectId && project && <p className="truncate px-2 pb-1 text-sm text-ink-muted">{project.name}</p>}
        {entries.map((entry) => (
          <SidebarLink key={entry.label} {...entry} />
        ))}
        {caller.is_operator && (
          <>
            {entries.length > 0 && <hr className="my-2 border-line" />}
            {/* On fleet pages, the current link is in the list below, so this link has no background. */}
            <SidebarLink label="Fleet" to="/fleet" icon="layout-grid" isPlain={isFleet} />
          </>
        )}
      </nav>
      {isFleet && (
        <nav aria-label="Fleet" className="-mt-2.5 flex flex-col gap-0.5 px-3 pb-3">
          {fleetPages.map(({ name, path }) => (
            <SidebarLink
              key={path}
              label={name}
              to={path}
              isExact={path === '/fleet'}
              // Hosts are opened from the map.
              under={path === '/fleet' ? ['/fleet/hosts'] : []}
            />
          ))}
        </nav>
      )}
    </>
  )
}

function SidebarLink({ label, to, icon, isExact = false, under = [], isPlain = false }: Entry) {
  const isUnder = under.some((path) => location.pathname.startsWith(path))
  const look = isPlain ? '' : 'aria-[current=page]:bg-sunken'
  return (
    <Link
      {...({ to } as LinkProps)}
      activeOptions={{ exact: isExact, includeSearch: false }}
      aria-current={isUnder ? 'page' : undefined}
      className={`flex items-center gap-2.5 rounded-md px-2 text-ink-muted hover:bg-sunken hover:text-ink aria-[current=page]:font-medium aria-[current=page]:text-ink ${icon ? 'h-8' : 'h-7 pl-8.5'} ${look}`}
    >
      {icon && <Icon name={icon} size={16} />}
      {label}
    </Link>
  )
}
