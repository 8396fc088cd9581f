import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { readSearch } from '../lib/search-params.ts'
import { PageError } from './page-states.tsx'
import { ProjectFrame } from './project-frame.tsx'
import { shellRoute } from './shell-route.tsx'

const pages = {
  overview: () => import('../pages/overview.tsx'),
  vms: () => import('../pages/vms/index.tsx'),
  vmCreate: () => import('../pages/vm-create/index.tsx'),
  vm: () => import('../pages/vm/index.tsx'),
  disks: () => import('../pages/disks/index.tsx'),
  firewall: () => import('../pages/network/firewall/index.tsx'),
  networks: () => import('../pages/network/networks/index.tsx'),
  usage: () => import('../pages/usage/index.tsx'),
  events: () => import('../pages/events.tsx'),
  operations: () => import('../pages/operations.tsx'),
  keys: () => import('../pages/settings/access-keys.tsx'),
  members: () => import('../pages/settings/members.tsx'),
  webhooks: () => import('../pages/settings/webhooks/index.tsx'),
  webhook: () => import('../pages/settings/webhook/index.tsx'),
  billing: () => import('../pages/settings/billing.tsx'),
  projectSettings: () => import('../pages/settings/project.tsx'),
}

const project = createRoute({
  getParentRoute: () => shellRoute,
  path: '/projects/$projectId',
  component: ProjectFrame,
  errorComponent: PageError,
})

const page = <const Path extends string>(path: Path, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => project, path, validateSearch: readSearch, component })

export const projectRoutes = project.addChildren([
  page('/', lazyRouteComponent(pages.overview, 'Overview')),
  page('/vms', lazyRouteComponent(pages.vms, 'Vms')),
  page('/vms/new', lazyRouteComponent(pages.vmCreate, 'VmCreatePage')),
  page('/vms/$vmId', lazyRouteComponent(pages.vm, 'VmPage')),
  page('/disks', lazyRouteComponent(pages.disks, 'Disks')),
  page('/network/firewall', lazyRouteComponent(pages.firewall, 'Firewall')),
  page('/network/networks', lazyRouteComponent(pages.networks, 'Networks')),
  page('/usage', lazyRouteComponent(pages.usage, 'Usage')),
  page('/events', lazyRouteComponent(pages.events, 'Events')),
  page('/operations', lazyRouteComponent(pages.operations, 'Operations')),
  page('/settings/keys', lazyRouteComponent(pages.keys, 'AccessKeys')),
  page('/settings/members', lazyRouteComponent(pages.members, 'Members')),
  page('/settings/webhooks', lazyRouteComponent(pages.webhooks, 'Webhooks')),
  page('/settings/webhooks/$webhookId', lazyRouteComponent(pages.webhook, 'WebhookPage')),
  page('/settings/billing', lazyRouteComponent(pages.billing, 'Billing')),
  page('/settings/project', lazyRouteComponent(pages.projectSettings, 'ProjectSettings')),
])
