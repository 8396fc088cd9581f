import { createRoute, Outlet } from '@tanstack/react-router'
import { useMe } from '../api/me.ts'
import { lazyPage } from './lazy-page.ts'
import { OperatorsOnly } from './page-states.tsx'
import { readSearch } from './search-params.ts'
import { shellRoute } from './shell-route.tsx'

const pages = {
  map: () => import('../pages/fleet/map/index.tsx'),
  host: () => import('../pages/fleet/host.tsx'),
  vms: () => import('../pages/fleet/vms.tsx'),
  vm: () => import('../pages/fleet/vm.tsx'),
  capacity: () => import('../pages/fleet/capacity.tsx'),
  health: () => import('../pages/fleet/health/index.tsx'),
  operations: () => import('../pages/fleet/operations.tsx'),
  operation: () => import('../pages/fleet/operation.tsx'),
  queue: () => import('../pages/fleet/queue/index.tsx'),
  reservations: () => import('../pages/fleet/reservations/index.tsx'),
  organizations: () => import('../pages/fleet/organizations.tsx'),
  organization: () => import('../pages/fleet/organization.tsx'),
  users: () => import('../pages/fleet/users.tsx'),
  user: () => import('../pages/fleet/user.tsx'),
  quotas: () => import('../pages/fleet/quotas.tsx'),
  prices: () => import('../pages/fleet/prices.tsx'),
  images: () => import('../pages/fleet/images.tsx'),
  audit: () => import('../pages/fleet/audit.tsx'),
}

const fleet = createRoute({
  getParentRoute: () => shellRoute,
  id: 'fleet',
  component: () => (useMe().caller.is_operator ? <Outlet /> : <OperatorsOnly />),
})

const page = <const Path extends string>(path: Path, component: ReturnType<typeof lazyPage>) =>
  createRoute({ getParentRoute: () => fleet, path, validateSearch: readSearch, component })

/** Operator pages. Each is a separate chunk and uses only the public operator API. */
export const fleetRoutes = fleet.addChildren([
  page('/fleet', lazyPage(pages.map, 'FleetMap')),
  page('/fleet/hosts/$hostId', lazyPage(pages.host, 'HostPage')),
  page('/fleet/vms', lazyPage(pages.vms, 'FleetVms')),
  page('/fleet/vms/$vmId', lazyPage(pages.vm, 'FleetVm')),
  page('/fleet/capacity', lazyPage(pages.capacity, 'Capacity')),
  page('/fleet/health', lazyPage(pages.health, 'FleetHealth')),
  page('/fleet/queue', lazyPage(pages.queue, 'FleetQueue')),
  page('/fleet/reservations', lazyPage(pages.reservations, 'FleetReservations')),
  page('/fleet/operations', lazyPage(pages.operations, 'FleetOperations')),
  page('/fleet/operations/$operationId', lazyPage(pages.operation, 'FleetOperation')),
  page('/fleet/organizations', lazyPage(pages.organizations, 'Organizations')),
  page('/fleet/organizations/$organizationId', lazyPage(pages.organization, 'OrganizationPage')),
  page('/fleet/users', lazyPage(pages.users, 'Users')),
  page('/fleet/users/$userId', lazyPage(pages.user, 'UserPage')),
  page('/fleet/quotas', lazyPage(pages.quotas, 'Quotas')),
  page('/fleet/prices', lazyPage(pages.prices, 'Prices')),
  page('/fleet/images', lazyPage(pages.images, 'Images')),
  page('/fleet/audit', lazyPage(pages.audit, 'Audit')),
])
