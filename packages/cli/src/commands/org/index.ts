import type { GroupSpec } from '../../core/command.ts'
import { listCommand, showCommand } from '../../core/generic-commands.ts'
import { orgAlertRecipients } from './alert-recipients.ts'
import { orgEvents } from './events.ts'
import { orgInvoices } from './invoices.ts'
import { orgKey } from './key/index.ts'
import { orgQuotaRequest } from './quota-request/index.ts'
import { orgQuotas } from './quotas.ts'
import { organizations } from './resource.ts'

export const org: GroupSpec = {
  name: 'org',
  summary: 'organizations, their invoices and quotas',
  commands: [
    listCommand(organizations),
    showCommand(organizations, (cli, organization_id) => cli.client.organizationGet({ organization_id })),
    orgEvents,
    orgInvoices,
    orgKey,
    orgQuotas,
    orgQuotaRequest,
    orgAlertRecipients,
  ],
}
