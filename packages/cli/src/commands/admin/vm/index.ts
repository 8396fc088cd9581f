import type { RouteResponse } from '@slipway/sdk'
import { command, type GroupSpec } from '../../../core/command.ts'
import { deleteCommand, listCommand } from '../../../core/generic-commands.ts'
import { ageColumn, idColumn, idOf, ownName, type Resource, refArgument } from '../../../core/resource.ts'

type AdminVm = RouteResponse<'adminVmList'>['items'][number]

const tenantVms: Resource<AdminVm> = {
  noun: 'vm',
  title: 'VM',
  example: 'train-7',
  otherExample: 'train-8',
  columns: [
    { name: 'name', value: (vm) => vm.name },
    { name: 'state', value: (vm) => vm.state, isState: true },
    { name: 'type', value: (vm) => vm.type },
    { name: 'location', value: (vm) => vm.location },
    { name: 'organization', value: (vm) => vm.organization_name },
    { name: 'project', value: (vm) => vm.project_name },
    ageColumn,
    idColumn,
  ],
  route: 'adminVmList',
  list: (cli) => cli.operator.collect('adminVmList', {}),
  named: ownName,
}

const stop = command<{ ref: string }>({
  name: 'stop',
  summary: 'stop a tenant’s VM',
  arguments: [refArgument(tenantVms)],
  examples: ['slipway admin vm stop train-7'],
  async run(cli, { ref }) {
    await cli.operator.adminVmStop({ vm_id: await idOf(cli, tenantVms, ref) })
    cli.note(`Stopping ${ref}.`)
  },
})

export const adminVm: GroupSpec = {
  name: 'vm',
  summary: 'VMs of all tenants',
  commands: [
    listCommand(tenantVms, { group: 'admin' }),
    stop,
    deleteCommand(
      tenantVms,
      async (cli, vm_id) => {
        await cli.operator.adminVmDelete({ vm_id })
        return {}
      },
      { group: 'admin', loses: 'Each VM belongs to a tenant. Its OS disk will also be deleted.' },
    ),
  ],
}
