import { isApiError } from '@slipway/sdk'
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router'
import { queryClient } from '../api/client.ts'
import { loadMe } from '../api/me.ts'
import { session } from '../api/session.ts'
import { lastProject } from '../lib/last-project.ts'
import { readSearch } from '../lib/search-params.ts'
import { Results } from '../ui/toast.tsx'
import { fleetRoutes } from './fleet-routes.tsx'
import { NotFound, PageError } from './page-states.tsx'
import { ProjectFrame } from './project-frame.tsx'
import { Shell } from './shell.tsx'

/** Messages stand beside every page, and inside the router: what they offer may lead somewhere. */
const Root = () => (
  <>
    <Outlet />
    <Results />
  </>
)
const root = createRootRoute({ component: Root, notFoundComponent: NotFound, errorComponent: PageError })

const publicPage = <const Path extends string>(path: Path, name: 'SignIn' | 'SetUp' | 'Accept') =>
  createRoute({
    getParentRoute: () => root,
    path,
    validateSearch: readSearch,
    component: lazyRouteComponent(() => import('../pages/sign-in.tsx'), name),
  })

export const shellRoute = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  beforeLoad: async ({ location }) => {
    try {
      await session.token()
      return { me: await loadMe() }
    } catch (error) {
      const isOver = isApiError(error) && (error.status === 401 || error.code === 'invalid_grant')
      if (!isOver) throw error
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { next: location.href } })
    }
  },
  component: Shell,
  errorComponent: PageError,
})

const home = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  beforeLoad: ({ context }) => {
    const { projects, caller } = context.me
    const project = projects.find(({ id }) => id === lastProject.get()) ?? projects[0]
    if (project) throw redirect({ to: '/projects/$projectId', params: { projectId: project.id } })
    if (caller.is_operator) throw redirect({ to: '/fleet' })
  },
  component: lazyRouteComponent(() => import('../pages/no-project.tsx'), 'NoProject'),
})

const account = createRoute({
  getParentRoute: () => shellRoute,
  path: '/account',
  component: lazyRouteComponent(() => import('../pages/account.tsx'), 'Account'),
})

const project = createRoute({
  getParentRoute: () => shellRoute,
  path: '/projects/$projectId',
  component: ProjectFrame,
  errorComponent: PageError,
})

const inProject = <const Path extends string>(path: Path, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => project, path, validateSearch: readSearch, component })

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

const tree = root.addChildren([
  publicPage('/sign-in', 'SignIn'),
  publicPage('/setup', 'SetUp'),
  publicPage('/accept', 'Accept'),
  shellRoute.addChildren([
    home,
    account,
    project.addChildren([
      inProject('/', lazyRouteComponent(pages.overview, 'Overview')),
      inProject('/vms', lazyRouteComponent(pages.vms, 'Vms')),
      inProject('/vms/new', lazyRouteComponent(pages.vmCreate, 'VmCreatePage')),
      inProject('/vms/$vmId', lazyRouteComponent(pages.vm, 'VmPage')),
      inProject('/disks', lazyRouteComponent(pages.disks, 'Disks')),
      inProject('/network/firewall', lazyRouteComponent(pages.firewall, 'Firewall')),
      inProject('/network/networks', lazyRouteComponent(pages.networks, 'Networks')),
      inProject('/usage', lazyRouteComponent(pages.usage, 'Usage')),
      inProject('/events', lazyRouteComponent(pages.events, 'Events')),
      inProject('/operations', lazyRouteComponent(pages.operations, 'Operations')),
      inProject('/settings/keys', lazyRouteComponent(pages.keys, 'AccessKeys')),
      inProject('/settings/members', lazyRouteComponent(pages.members, 'Members')),
      inProject('/settings/webhooks', lazyRouteComponent(pages.webhooks, 'Webhooks')),
      inProject('/settings/webhooks/$webhookId', lazyRouteComponent(pages.webhook, 'WebhookPage')),
      inProject('/settings/billing', lazyRouteComponent(pages.billing, 'Billing')),
      inProject('/settings/project', lazyRouteComponent(pages.projectSettings, 'ProjectSettings')),
    ]),
    ...fleetRoutes(shellRoute),
  ]),
])

export const router = createRouter({
  routeTree: tree,
  defaultPreload: 'intent',
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
  scrollToTopSelectors: ['#content'],
  defaultPendingMs: 200,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}

session.onEnd(() => {
  queryClient.clear()
  const { pathname, href } = router.state.location
  if (pathname === '/sign-in' || pathname === '/setup' || pathname === '/accept') return
  void router.navigate({ to: '/sign-in', search: { next: href, ended: '1' } })
})
