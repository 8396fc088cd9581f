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

export function FleetTabs() {
  const tabs = fleetPages.map(({ name, path }) => ({ label: name, to: path, isExact: path === '/fleet' }))
  return <TabLinks label="Fleet" tabs={tabs} />
}

/** An operator page with the fleet tabs. */
export function FleetPage({ actions, children }: { actions?: ReactNode; children: ReactNode }) {
  const { pathname } = useLocation()
  const { name } = fleetPages.find(({ path }) => path === pathname) ?? { name: '' }
  return (
    <Page title="Fleet" tabTitle={`Fleet ${name}`.trim()} isWide actions={actions}>
      <FleetTabs />
      {children}
    </Page>
  )
}
