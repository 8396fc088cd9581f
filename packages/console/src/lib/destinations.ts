/** After `g`, each of these keys opens a page of the project. */
export const destinations: Record<string, { name: string; path: string }> = {
  o: { name: 'Overview', path: '' },
  v: { name: 'VMs', path: '/vms' },
  d: { name: 'Disks', path: '/disks' },
  n: { name: 'Network', path: '/network/firewall' },
  u: { name: 'Usage', path: '/usage' },
  e: { name: 'Events', path: '/events' },
  s: { name: 'Settings', path: '/settings/keys' },
}
