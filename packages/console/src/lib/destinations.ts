export interface PageName {
  name: string
  path: string
}

/** The project pages that open with keyboard shortcuts: `g`, then one of these keys. */
export const destinations: Record<string, PageName> = {
  o: { name: 'Overview', path: '' },
  v: { name: 'VMs', path: '/vms' },
  d: { name: 'Disks', path: '/disks' },
  n: { name: 'Network', path: '/network/firewall' },
  u: { name: 'Usage', path: '/usage' },
  e: { name: 'Activity', path: '/activity' },
  s: { name: 'Settings', path: '/settings/keys' },
}

/** Project pages that are tabs of one page. */
export const vmPages: PageName[] = [
  { name: 'VMs', path: '/vms' },
  { name: 'Groups', path: '/groups' },
  { name: 'Templates', path: '/templates' },
  { name: 'Queue', path: '/queue' },
]
export const storagePages: PageName[] = [
  { name: 'Disks', path: '/disks' },
  { name: 'Snapshots', path: '/snapshots' },
  { name: 'Images', path: '/images' },
]
export const networkPages: PageName[] = [
  { name: 'Firewall', path: '/network/firewall' },
  { name: 'Networks', path: '/network/networks' },
  { name: 'Addresses', path: '/network/addresses' },
]
export const settingsPages: PageName[] = [
  { name: 'Access keys', path: '/settings/keys' },
  { name: 'SSH keys', path: '/settings/ssh-keys' },
  { name: 'Members', path: '/settings/members' },
  { name: 'Webhooks', path: '/settings/webhooks' },
  { name: 'Billing and budget', path: '/settings/billing' },
  { name: 'Project', path: '/settings/project' },
  { name: 'Organization', path: '/settings/organization' },
  { name: 'Reservations', path: '/settings/reservations' },
]
/** The operator pages, which do not belong to a project. */
export const fleetPages: PageName[] = [
  { name: 'Map', path: '/fleet' },
  { name: 'VMs', path: '/fleet/vms' },
  { name: 'Capacity', path: '/fleet/capacity' },
  { name: 'Health', path: '/fleet/health' },
  { name: 'Queue', path: '/fleet/queue' },
  { name: 'Reservations', path: '/fleet/reservations' },
  { name: 'Operations', path: '/fleet/operations' },
  { name: 'Organizations', path: '/fleet/organizations' },
  { name: 'Users', path: '/fleet/users' },
  { name: 'Quotas', path: '/fleet/quotas' },
  { name: 'Prices', path: '/fleet/prices' },
  { name: 'Images', path: '/fleet/images' },
  { name: 'Audit log', path: '/fleet/audit' },
]
