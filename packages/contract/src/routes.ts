import type { Static, TSchema } from 'typebox'
import { adminAccountRoutes } from './admin/accounts.ts'
import { adminCatalogueRoutes } from './admin/catalogue.ts'
import { adminFleetRoutes } from './admin/fleet.ts'
import { adminOperationRoutes } from './admin/operations.ts'
import { adminTenantRoutes } from './admin/tenants.ts'
import { alertAndSearchRoutes } from './alerts-and-search.ts'
import { adminQuotaRequestRoutes, quotaRequestRoutes } from './capacity/quota-requests.ts'
import { adminCapacityRequestRoutes, capacityRequestRoutes } from './capacity/requests.ts'
import { adminReservationRoutes, reservationRoutes } from './capacity/reservations.ts'
import { customImageRoutes } from './captures/custom-images.ts'
import { snapshotRoutes } from './captures/snapshots.ts'
import { catalogueRoutes } from './catalogue.ts'
import { diskRoutes } from './disks.ts'
import { eventRoutes } from './events.ts'
import { identityRoutes } from './identity/routes.ts'
import { consoleRoutes } from './instances/console.ts'
import { instanceGroupRoutes } from './instances/groups.ts'
import { metricRoutes } from './instances/metrics.ts'
import { instanceTemplateRoutes } from './instances/templates.ts'
import { addressRoutes } from './network/addresses.ts'
import { operationRoutes } from './operations.ts'
import { organizationRoutes } from './organizations.ts'
import type { Route } from './route.ts'
import { signInRoutes } from './sign-in.ts'
import { sshKeyRoutes } from './ssh-keys.ts'
import { vmRoutes } from './vms.ts'
import { vpcRoutes } from './vpc.ts'

/** Every endpoint. The server, the OpenAPI document, the SDK types and the tests all use this table. */
export const routes = {
  ...identityRoutes,
  ...signInRoutes,
  ...organizationRoutes,
  ...quotaRequestRoutes,
  ...catalogueRoutes,
  ...vmRoutes,
  ...metricRoutes,
  ...consoleRoutes,
  ...capacityRequestRoutes,
  ...reservationRoutes,
  ...sshKeyRoutes,
  ...instanceTemplateRoutes,
  ...instanceGroupRoutes,
  ...diskRoutes,
  ...snapshotRoutes,
  ...customImageRoutes,
  ...vpcRoutes,
  ...addressRoutes,
  ...operationRoutes,
  ...eventRoutes,
  ...alertAndSearchRoutes,
  ...adminFleetRoutes,
  ...adminCapacityRequestRoutes,
  ...adminReservationRoutes,
  ...adminCatalogueRoutes,
  ...adminTenantRoutes,
  ...adminQuotaRequestRoutes,
  ...adminOperationRoutes,
  ...adminAccountRoutes,
}

export type Routes = typeof routes
export type RouteId = keyof Routes
export const routeIds = Object.keys(routes) as RouteId[]
export const routeOf = (id: RouteId): Route => routes[id]

type Part<R, K extends string> = R extends { [P in K]: infer S extends TSchema } ? Static<S> : undefined
type ParamNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never

export type RouteParams<Id extends RouteId> = { [N in ParamNames<Routes[Id]['path']>]: string }
export type RouteQuery<Id extends RouteId> = Part<Routes[Id], 'query'>
export type RouteBody<Id extends RouteId> = Part<Routes[Id], 'body'>
export type RouteResponse<Id extends RouteId> = Static<Routes[Id]['response']>
