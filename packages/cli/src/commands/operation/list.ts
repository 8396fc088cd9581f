import type { Operation, OperationState } from '@slipway/sdk'
import { listCommand } from '../../core/generic-commands.ts'
import { operations, stateOption } from './resource.ts'

interface ListInput {
  state?: string
  resource?: string
}

export const operationList = listCommand<Operation, ListInput>(operations, {
  options: [stateOption, { flags: '--resource <id>', description: 'of one VM, disk or firewall rule' }],
  examples: ['slipway operation list --state failed'],
  list: async (cli, { state, resource }) =>
    cli.client.collect('operationList', {
      project_id: await cli.project(),
      state: state?.toUpperCase() as OperationState | undefined,
      resource_id: resource,
    }),
})
