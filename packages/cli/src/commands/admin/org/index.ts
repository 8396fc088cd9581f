import type { GroupSpec } from '../../../core/command.ts'
import { listCommand } from '../../../core/generic-commands.ts'
import { adminOrgCreate } from './create.ts'
import { adminOrgQuotas } from './quotas.ts'
import { adminOrganizations } from './resource.ts'
import { adminOrgRestore, adminOrgSuspend } from './suspend.ts'

export const adminOrg: GroupSpec = {
  name: 'org',
  summary: 'organizations',
  commands: [
    listCommand(adminOrganizations, { group: 'admin' }),
    adminOrgCreate,
    adminOrgSuspend,
    adminOrgRestore,
    adminOrgQuotas,
  ],
}
