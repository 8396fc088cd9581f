import { createRoute, createRouter, redirect } from '@tanstack/react-router'
import { queryClient } from '../api/client.ts'
import { session } from '../api/session.ts'
import { lastProject } from '../lib/last-project.ts'
import { readSearch } from '../lib/search-params.ts'
import { fleetRoutes } from './fleet-routes.tsx'
import { lazyPage } from './lazy-page.ts'
import { projectRoutes } from './project-routes.tsx'
import { rootRoute, shellRoute } from './shell-route.tsx'

const publicPage = <const Path extends string>(path: Path, component: ReturnType<typeof lazyPage>) =>
  createRoute({ getParentRoute: () => rootRoute, path, validateSearch: readSearch, component })

const home = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  beforeLoad: ({ context }) => {
    const { projects, caller } = context.me
    const project = projects.find(({ id }) => id === lastProject.get()) ?? projects[0]
    if (project) throw redirect({ to: '/projects/$projectId', params: { projectId: project.id } })
    if (caller.is_operator) throw redirect({ to: '/fleet' })
  },
  component: lazyPage(() => import('../pages/no-project.tsx'), 'NoProject'),
})

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
  shellRoute.addChildren([home, account, projectRoutes, ...fleetRoutes]),
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
  if (how === 'over' && isInside) return
  queryClient.clear()
  if (['/sign-in', '/setup', '/accept', '/reset', '/forgot', '/catalogue'].includes(pathname)) return
  void router.navigate({ to: '/sign-in', search: { next: href, ended: '1' } })
})
