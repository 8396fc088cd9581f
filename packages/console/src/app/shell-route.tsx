import { isApiError } from '@slipway/sdk'
import { createRootRoute, createRoute, Outlet, redirect } from '@tanstack/react-router'
import { loadMe } from '../api/me.ts'
import { session } from '../api/session.ts'
import { billingAction } from '../features/billing-button.tsx'
import { ErrorActionProvider } from '../ui/error.tsx'
import { Toasts } from '../ui/toasts.tsx'
import { NotFound, PageError } from './page-states.tsx'
import { Shell } from './shell.tsx'

/** Toasts are on every page, and inside the router because they can contain links. */
const Root = () => (
  <ErrorActionProvider value={billingAction}>
    <Outlet />
    <Toasts />
  </ErrorActionProvider>
)

export const rootRoute = createRootRoute({
  component: Root,
  notFoundComponent: NotFound,
  errorComponent: PageError,
})

/** The parent of every page that needs a session. */
export const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'shell',
  beforeLoad: async ({ location }) => {
    try {
      await session.token()
      return { me: await loadMe() }
    } catch (error) {
      const isSignedOut = isApiError(error) && (error.status === 401 || error.code === 'invalid_grant')
      if (!isSignedOut) throw error
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { next: location.href } })
    }
  },
  component: Shell,
  errorComponent: PageError,
})
