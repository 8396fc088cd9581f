import type { Network } from '@slipway/sdk'
import type { OptionSpec } from '../../core/command.ts'
import { labelsColumn } from '../../core/labels.ts'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'

export const networks: Resource<Network> = {
  noun: 'network',
  title: 'network',
  example: 'training',
  otherExample: 'staging',
  columns: [
    { name: 'name', value: (network) => network.name },
    { name: 'cidr', value: (network) => network.cidr },
    { name: 'gateway', value: (network) => network.gateway, hideOrder: 2 },
    { name: 'subnets', value: (network) => network.subnets.length, align: 'right' },
    ageColumn,
    idColumn,
    labelsColumn,
  ],
  route: 'networkList',
  list: async (cli) => cli.client.collect('networkList', { project_id: await cli.project() }),
  named: ownName,
}

/** Networks and subnets have the same limits. */
export const cidrOption: OptionSpec = {
  flags: '--cidr <block>',
  description: 'private IPv4 block, /16 to /28',
  required: true,
}
