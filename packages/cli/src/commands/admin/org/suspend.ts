import { type AnyCommand, command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { adminOrganizations } from './resource.ts'

function suspensionCommand(name: 'suspend' | 'restore', summary: string): AnyCommand {
  return command<{ ref: string; stopVms?: boolean }>({
    name,
    summary,
    arguments: [refArgument(adminOrganizations)],
    options:
      name === 'suspend'
        ? [{ flags: '--stop-vms', description: 'also stop the VMs of the organization' }]
        : [],
    examples: [`slipway admin org ${name} ${adminOrganizations.example}`],
    async run(cli, { ref, stopVms }) {
      const organization_id = await idOf(cli, adminOrganizations, ref)
      const body = { suspended: name === 'suspend', stop_vms: stopVms }
      await printOne(cli, await cli.operator.adminOrganizationUpdate({ organization_id }, body))
    },
  })
}

export const adminOrgSuspend = suspensionCommand('suspend', 'suspend an organization')
export const adminOrgRestore = suspensionCommand('restore', 'lift the suspension of an organization')
