import type { RouteId } from '@slipway/contract'
import type { Handlers } from './context.ts'
import { adminOperationHandlers } from './handlers/admin-operations.ts'
import { billingHandlers } from './handlers/billing.ts'
import { catalogueHandlers } from './handlers/catalogue.ts'
import { diskHandlers } from './handlers/disks.ts'
import { eventHandlers } from './handlers/events.ts'
import { firewallRuleHandlers } from './handlers/firewall-rules.ts'
import { fleetHandlers } from './handlers/fleet.ts'
import { identityHandlers } from './handlers/identity.ts'
import { networkHandlers } from './handlers/networks.ts'
import { operationHandlers } from './handlers/operations.ts'
import { organizationHandlers } from './handlers/organizations.ts'
import { usageHandlers } from './handlers/usage.ts'
import { vmHandlers } from './handlers/vms.ts'
import { webhookHandlers } from './handlers/webhooks.ts'

/** Every route has its handler, or this does not compile. */
export const handlers: Handlers<RouteId> = {
  ...identityHandlers,
  ...organizationHandlers,
  ...billingHandlers,
  ...usageHandlers,
  ...catalogueHandlers,
  ...fleetHandlers,
  ...vmHandlers,
  ...diskHandlers,
  ...networkHandlers,
  ...firewallRuleHandlers,
  ...operationHandlers,
  ...adminOperationHandlers,
  ...eventHandlers,
  ...webhookHandlers,
}
