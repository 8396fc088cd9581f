import type { Handlers } from '../context.ts'
import { accessKeyHandlers } from './access-keys.ts'
import { adminCatalogueHandlers } from './admin-catalogue.ts'
import { adminOperationHandlers } from './admin-operations.ts'
import { adminVmHandlers } from './admin-vms.ts'
import { alertAndSearchHandlers } from './alerts-and-search.ts'
import { billingHandlers } from './billing.ts'
import { quotaRequestHandlers } from './capacity/quota-requests.ts'
import { capacityRequestHandlers } from './capacity/requests.ts'
import { reservationHandlers } from './capacity/reservations.ts'
import { customImageHandlers } from './captures/custom-images.ts'
import { snapshotHandlers } from './captures/snapshots.ts'
import { catalogueHandlers } from './catalogue.ts'
import { diskHandlers } from './disks.ts'
import { eventHandlers } from './events.ts'
import { firewallRuleHandlers } from './firewall-rules.ts'
import { fleetHandlers } from './fleet.ts'
import { identityHandlers } from './identity.ts'
import { consoleHandlers } from './instances/console.ts'
import { instanceGroupHandlers } from './instances/groups.ts'
import { metricHandlers } from './instances/metrics.ts'
import { instanceTemplateHandlers } from './instances/templates.ts'
import { memberHandlers } from './members.ts'
import { addressHandlers } from './network/addresses.ts'
import { networkHandlers } from './networks.ts'
import { operationHandlers } from './operations.ts'
import { organizationHandlers } from './organizations.ts'
import { projectHandlers } from './projects.ts'
import { signInHandlers } from './sign-in.ts'
import { sshKeyHandlers } from './ssh-keys.ts'
import { tokenHandlers } from './tokens.ts'
import { usageHandlers } from './usage.ts'
import { userHandlers } from './users.ts'
import { vmHandlers } from './vms.ts'
import { webhookHandlers } from './webhooks.ts'

/** A route without a handler does not compile. */
export const handlers: Handlers = {
  ...identityHandlers,
  ...tokenHandlers,
  ...signInHandlers,
  ...accessKeyHandlers,
  ...memberHandlers,
  ...organizationHandlers,
  ...quotaRequestHandlers,
  ...projectHandlers,
  ...userHandlers,
  ...billingHandlers,
  ...usageHandlers,
  ...catalogueHandlers,
  ...fleetHandlers,
  ...adminCatalogueHandlers,
  ...vmHandlers,
  ...metricHandlers,
  ...consoleHandlers,
  ...capacityRequestHandlers,
  ...reservationHandlers,
  ...sshKeyHandlers,
  ...instanceTemplateHandlers,
  ...instanceGroupHandlers,
  ...diskHandlers,
  ...snapshotHandlers,
  ...customImageHandlers,
  ...networkHandlers,
  ...addressHandlers,
  ...firewallRuleHandlers,
  ...operationHandlers,
  ...adminOperationHandlers,
  ...adminVmHandlers,
  ...eventHandlers,
  ...alertAndSearchHandlers,
  ...webhookHandlers,
}
