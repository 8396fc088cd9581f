import { createRoute, redirect } from '@tanstack/react-router'
import { lazyPage } from './lazy-page.ts'
import { PageError } from './page-states.tsx'
import { ProjectFrame } from './project-frame.tsx'
import { readSearch } from './search-params.ts'
import { shellRoute } from './shell-route.tsx'

const pages = {
  overview: () => import('../pages/overview.tsx'),
  vms: () => import('../pages/vms/index.tsx'),
  vmCreate: () => import('../pages/vm-create/index.tsx'),
  vm: () => import('../pages/vm/index.tsx'),
  groups: () => import('../pages/groups.tsx'),
  group: () => import('../pages/group/index.tsx'),
  templates: () => import('../pages/templates/index.tsx'),
  queue: () => import('../pages/queue/index.tsx'),
  vmMetrics: () => import('../pages/vm/metrics/index.tsx'),
  vmConsole: () => import('../pages/vm/console/index.tsx'),
  disks: () => import('../pages/disks/index.tsx'),
  snapshots: () => import('../pages/storage/snapshots.tsx'),
  images: () => import('../pages/storage/images.tsx'),
  firewall: () => import('../pages/network/firewall/index.tsx'),
  networks: () => import('../pages/network/networks/index.tsx'),
  addresses: () => import('../pages/network/addresses/index.tsx'),
  usage: () => import('../pages/usage/index.tsx'),
  activity: () => import('../pages/activity.tsx'),
  reservations: () => import('../pages/settings/reservations.tsx'),
  keys: () => import('../pages/settings/access-keys.tsx'),
  sshKeys: () => import('../pages/settings/ssh-keys.tsx'),
  members: () => import('../pages/settings/members.tsx'),
  webhooks: () => import('../pages/settings/webhooks/index.tsx'),
  webhook: () => import('../pages/settings/webhook/index.tsx'),
  billing: () => import('../pages/settings/billing.tsx'),
  projectSettings: () => import('../pages/settings/project.tsx'),
  organization: () => import('../pages/settings/organization.tsx'),
}

const project = createRoute({
  getParentRoute: () => shellRoute,
  path: '/projects/$projectId',
  component: ProjectFrame,
  errorComponent: PageError,
})

const page = <const Path extends string>(path: Path, component: ReturnType<typeof lazyPage>) =>
  createRoute({ getParentRoute: () => project, path, validateSearch: readSearch, component })

/** Former pages. Links to them keep their filters. */
const movedToActivity = <const Path extends string>(path: Path) =>
  createRoute({
    getParentRoute: () => project,
    path,
    validateSearch: readSearch,
    beforeLoad: ({ params, search }) => {
      throw redirect({
        to: '/projects/$projectId/activity',
        params: params as { projectId: string },
        search: search as never,
        replace: true,
      })
    },
  })

export const projectRoutes = project.addChildren([
  page('/', lazyPage(pages.overview, 'Overview')),
  page('/vms', lazyPage(pages.vms, 'Vms')),
  page('/vms/new', lazyPage(pages.vmCreate, 'VmCreatePage')),
  page('/vms/$vmId', lazyPage(pages.vm, 'VmPage')),
  page('/groups', lazyPage(pages.groups, 'Groups')),
  page('/groups/$groupId', lazyPage(pages.group, 'GroupPage')),
  page('/templates', lazyPage(pages.templates, 'Templates')),
  page('/queue', lazyPage(pages.queue, 'Queue')),
  page('/vms/$vmId/metrics', lazyPage(pages.vmMetrics, 'VmMetricsPage')),
  page('/vms/$vmId/console', lazyPage(pages.vmConsole, 'VmConsolePage')),
  page('/disks', lazyPage(pages.disks, 'Disks')),
  page('/snapshots', lazyPage(pages.snapshots, 'Snapshots')),
  page('/images', lazyPage(pages.images, 'CustomImages')),
  page('/network/firewall', lazyPage(pages.firewall, 'Firewall')),
  page('/network/networks', lazyPage(pages.networks, 'Networks')),
  page('/network/addresses', lazyPage(pages.addresses, 'Addresses')),
  page('/usage', lazyPage(pages.usage, 'Usage')),
  page('/activity', lazyPage(pages.activity, 'Activity')),
  movedToActivity('/events'),
  movedToActivity('/operations'),
  page('/settings/reservations', lazyPage(pages.reservations, 'Reservations')),
  page('/settings/keys', lazyPage(pages.keys, 'AccessKeys')),
  page('/settings/organization', lazyPage(pages.organization, 'OrganizationSettings')),
  page('/settings/ssh-keys', lazyPage(pages.sshKeys, 'SshKeys')),
  page('/settings/members', lazyPage(pages.members, 'Members')),
  page('/settings/webhooks', lazyPage(pages.webhooks, 'Webhooks')),
  page('/settings/webhooks/$webhookId', lazyPage(pages.webhook, 'WebhookPage')),
  page('/settings/billing', lazyPage(pages.billing, 'Billing')),
  page('/settings/project', lazyPage(pages.projectSettings, 'ProjectSettings')),
])
