import { createRoute, createRouter, redirect } from '@tanstack/react-router'
import { queryClient } from '../api/client.ts'
import type { loadMe } from '../api/me.ts'
import { read } from '../api/read.ts'
import { session } from '../api/session.ts'
import { lastProject } from '../lib/last-project.ts'
import { fleetRoutes } from './fleet-routes.tsx'
import { lazyPage } from './lazy-page.ts'
import { NotFound } from './page-states.tsx'
import { projectRoutes } from './project-routes.tsx'
import { readSearch } from './search-params.ts'
import { rootRoute, shellRoute } from './shell-route.tsx'

const publicPage = <const Path extends string>(path: Path, component: ReturnType<typeof lazyPage>) =>
  createRoute({ getParentRoute: () => rootRoute, path, validateSearch: readSearch, component })

const home = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  beforeLoad: async ({ context }) => {
    const { projects, caller } = context.me
    const project = projects.find(({ id }) => id === lastProject.get()) ?? (await busiestOf(context.me))
    if (project) throw redirect({ to: '/projects/$projectId', params: { projectId: project.id } })
    if (caller.is_operator) throw redirect({ to: '/fleet' })
  },
  component: lazyPage(() => import('../pages/no-project.tsx'), 'NoProject'),
})

/** Returns the project with the most running VMs; the first project if none are running. */
async function busiestOf({ projects, organizations }: Awaited<ReturnType<typeof loadMe>>) {
  if (projects.length < 2) return projects[0]
  const lists = await Promise.all(
    organizations.map(({ id }) =>
      queryClient
        .fetchQuery(read('organizationProjectList', { params: { organization_id: id } }))
        // The service refuses to list the projects of a suspended organization.
        .catch(() => ({ items: [] })),
    ),
  )
  const running = new Map(lists.flatMap(({ items }) => items.map((item) => [item.id, item.running_vms])))
  const runningIn = ({ id }: { id: string }) => running.get(id) ?? 0
  return projects.toSorted((a, b) => runningIn(b) - runningIn(a))[0]
}

const allProjects = createRoute({
  getParentRoute: () => shellRoute,
  path: '/projects',
  component: lazyPage(() => import('../pages/projects.tsx'), 'Projects'),
})

/** Unknown paths keep the header and the sidebar. */
const unknown = createRoute({ getParentRoute: () => shellRoute, path: '$', component: NotFound })

const account = createRoute({
  getParentRoute: () => shellRoute,
  path: '/account',
  component: lazyPage(() => import('../pages/account.tsx'), 'Account'),
})

const routeTree = rootRoute.addChildren([
  publicPage(
    '/sign-in',
    lazyPage(() => import('../pages/sign-in.tsx'), 'SignIn'),
  ),
  publicPage(
    '/setup',
    lazyPage(() => import('../pages/sign-in.tsx'), 'SetUp'),
  ),
  publicPage(
    '/accept',
    lazyPage(() => import('../pages/invitation.tsx'), 'Accept'),
  ),
  publicPage(
    '/reset',
    lazyPage(() => import('../pages/reset.tsx'), 'Reset'),
  ),
  publicPage(
    '/catalogue',
    lazyPage(() => import('../pages/catalogue.tsx'), 'Catalogue'),
  ),
  publicPage(
    '/forgot',
    lazyPage(() => import('../pages/reset.tsx'), 'Forgot'),
  ),
  publicPage(
    '/billing/returned',
    lazyPage(() => import('../pages/billing/invoice.tsx'), 'BillingReturned'),
  ),
  publicPage(
    '/billing/$token',
    lazyPage(() => import('../pages/billing/index.tsx'), 'BillingDashboardPage'),
  ),
  publicPage(
    '/billing/$token/invoices/$invoiceId',
    lazyPage(() => import('../pages/billing/invoice.tsx'), 'InvoicePage'),
  ),
  shellRoute.addChildren([home, account, allProjects, projectRoutes, fleetRoutes, unknown]),
])

export const router = createRouter({
  routeTree,
  defaultPreload: 'intent',
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
  scrollToTopSelectors: ['#content'],
  defaultPendingMs: 200,
})

// Gives the library's links and hooks the types of our routes, so that no page imports the router.
declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}

session.onEnd((how) => {
  const { pathname, href } = router.state.location
  const isInside = router.state.matches.some(({ routeId }) => routeId === shellRoute.id)
  // The page keeps its state behind the sign-in dialog.
  if (how === 'expired' && isInside) return
  queryClient.clear()
  if (/^\/(sign-in|setup|accept|reset|forgot|catalogue|billing)(\/|$)/.test(pathname)) return
  void router.navigate({ to: '/sign-in', search: { next: href, ended: '1' } })
})
