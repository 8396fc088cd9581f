import type { OperationState } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { printList } from '../../output/print.ts'
import { idOfAny, namesById } from '../resource-names.ts'
import { operations, stateOption } from './resource.ts'

interface ListInput {
  state?: string
  resource?: string
}

export const operationList = command<ListInput>({
  name: 'list',
  summary: 'list operations',
  options: [
    stateOption,
    {
      flags: '--resource <resource>',
      description: 'only operations on this VM, group, disk or firewall rule (name or id)',
      complete: 'vm',
    },
  ],
  columns: operations.columns,
  examples: [
    'slipway operation list',
    'slipway operation list -o json',
    'slipway operation list --state failed',
    'slipway operation list --resource train-7',
  ],
  async run(cli, { state, resource }) {
    const found = await cli.client.collect('operationList', {
      project_id: await cli.project(),
      state: state?.toUpperCase() as OperationState | undefined,
      resource_id: resource && (await idOfAny(cli, resource)),
    })
    const names = await namesById(cli)
    // The name of a deleted resource is in the request that created it.
    for (const { metadata } of found) {
      const { name } = metadata.request
      if (typeof name === 'string' && !names.has(metadata.id)) names.set(metadata.id, name)
    }
    const columns = operations.columns.map((column) =>
      column.name === 'resource'
        ? {
            ...column,
            value: ({ metadata }: (typeof found)[number]) => names.get(metadata.id) ?? metadata.id,
          }
        : column,
    )
    await printList(cli, found, columns, 'operationList')
  },
})
