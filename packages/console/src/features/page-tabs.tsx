import { useLocation } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useProjectId } from '../api/me.ts'
import {
  fleetPages,
  networkPages,
  type PageName,
  settingsPages,
  storagePages,
  vmPages,
} from '../lib/destinations.ts'
import { Page } from '../ui/page.tsx'
import { TabLinks } from '../ui/tabs.tsx'

export const VmTabs = () => <ProjectTabs label="VMs" pages={vmPages} />
export const StorageTabs = () => <ProjectTabs label="Disks" pages={storagePages} />
export const NetworkTabs = () => <ProjectTabs label="Network" pages={networkPages} />
export const SettingsTabs = () => <ProjectTabs label="Settings" pages={settingsPages} />

function ProjectTabs({ label, pages }: { label: string; pages: PageName[] }) {
  const base = `/projects/${useProjectId()}`
  return <TabLinks label={label} tabs={pages.map(({ name, path }) => ({ label: name, to: base + path }))} />
}

interface FleetPageProps {
  /** Shown next to the title. */
  aside?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

/** An operator page. The sidebar links to the other operator pages. */
export function FleetPage({ aside, actions, children }: FleetPageProps) {
  const { pathname } = useLocation()
  const { name } = fleetPages.find((page) => page.path === pathname) ?? { name: '' }
  return (
    <Page title={name} tabTitle={`Fleet ${name}`.trim()} isWide aside={aside} actions={actions}>
      {children}
    </Page>
  )
}
