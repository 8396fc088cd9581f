import type { RouteId } from '@slipway/contract'
import type { Handlers } from './context.ts'
import { catalogueHandlers } from './handlers/catalogue.ts'
import { fleetHandlers } from './handlers/fleet.ts'
import { identityHandlers } from './handlers/identity.ts'
import { organizationHandlers } from './handlers/organizations.ts'

/** Every route has its handler, or this does not compile. */
export const handlers: Handlers<RouteId> = {
  ...identityHandlers,
  ...organizationHandlers,
  ...catalogueHandlers,
  ...fleetHandlers,
}
