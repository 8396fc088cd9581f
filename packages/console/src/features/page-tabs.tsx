import type { ReactNode } from 'react'
import { useProjectId } from '../api/me.ts'
import { Page } from '../ui/page.tsx'
import { TabLinks } from '../ui/tabs.tsx'

export function NetworkTabs() {
  const base = `/projects/${useProjectId()}/network`
  return (
    <TabLinks
      label="Network"
      tabs={[
        { label: 'Firewall', to: `${base}/firewall` },
        { label: 'Networks', to: `${base}/networks` },
      ]}
    />
  )
}

export function EventTabs() {
  const base = `/projects/${useProjectId()}`
  return (
    <TabLinks
      label="Events"
      tabs={[
        { label: 'Events', to: `${base}/events` },
        { label: 'Operations', to: `${base}/operations` },
      ]}
    />
  )
}

export function SettingsTabs() {
  const base = `/projects/${useProjectId()}/settings`
  return (
    <TabLinks
      label="Settings"
      tabs={[
        { label: 'Access keys', to: `${base}/keys` },
        { label: 'SSH keys', to: `${base}/ssh-keys` },
        { label: 'Members', to: `${base}/members` },
        { label: 'Webhooks', to: `${base}/webhooks` },
        { label: 'Billing and budget', to: `${base}/billing` },
        { label: 'Project', to: `${base}/project` },
        { label: 'Organization', to: `${base}/organization` },
      ]}
    />
  )
}

export function FleetTabs() {
  return (
    <TabLinks
      label="Fleet"
      tabs={[
        { label: 'Map', to: '/fleet', isExact: true },
        { label: 'VMs', to: '/fleet/vms' },
        { label: 'Capacity', to: '/fleet/capacity' },
        { label: 'Operations', to: '/fleet/operations' },
        { label: 'Organizations', to: '/fleet/organizations' },
        { label: 'Users', to: '/fleet/users' },
        { label: 'Quotas', to: '/fleet/quotas' },
        { label: 'Prices', to: '/fleet/prices' },
        { label: 'Images', to: '/fleet/images' },
        { label: 'Audit log', to: '/fleet/audit' },
      ]}
    />
  )
}

/** Operators' pages are tables of the whole service, under one row of tabs. */
export function FleetPage({ actions, children }: { actions?: ReactNode; children: ReactNode }) {
  return (
    <Page title="Fleet" isWide actions={actions}>
      <FleetTabs />
      {children}
    </Page>
  )
}
