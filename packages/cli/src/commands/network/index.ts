import { command, type GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { idOf } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { subnets } from '../subnet/resource.ts'
import { networks } from './resource.ts'

const cidr = {
  flags: '--cidr <block>',
  description: 'private IPv4 block, /16 to /28',
  required: true,
} as const

export const network: GroupSpec = {
  name: 'network',
  summary: 'private networks',
  commands: [
    listCommand(networks),
    showCommand(networks, async (cli, network_id) =>
      cli.client.networkGet({ project_id: await cli.project(), network_id }),
    ),
    command<{ name: string; cidr: string }>({
      name: 'create',
      summary: 'create a network',
      arguments: [{ syntax: '<name>', description: 'name of the network' }],
      options: [cidr],
      examples: ['slipway network create training --cidr 10.20.0.0/16'],
      async run(cli, { name, cidr }) {
        await printOne(
          cli,
          await cli.client.networkCreate({ project_id: await cli.project() }, { name, cidr }),
        )
      },
    }),
    deleteCommand(networks, async (cli, network_id) => {
      await cli.client.networkDelete({ project_id: await cli.project(), network_id })
      return {}
    }),
  ],
}

interface SubnetInput {
  name: string
  cidr: string
  network: string
  location: string
}

export const subnet: GroupSpec = {
  name: 'subnet',
  summary: 'subnets of a network, one location each',
  commands: [
    listCommand(subnets),
    showCommand(subnets, async (cli, subnet_id) =>
      cli.client.subnetGet({ project_id: await cli.project(), subnet_id }),
    ),
    command<SubnetInput>({
      name: 'create',
      summary: 'create a subnet',
      arguments: [{ syntax: '<name>', description: 'name of the subnet' }],
      options: [
        cidr,
        {
          flags: '--network <network>',
          description: 'name or id of the network',
          complete: 'network',
          required: true,
        },
        { flags: '--location <location>', description: 'where', complete: 'location', required: true },
      ],
      examples: [
        'slipway subnet create training-a --network training --cidr 10.20.0.0/20 --location us-east1-a',
      ],
      async run(cli, { name, cidr, network, location }) {
        const vpc_network_id = await idOf(cli, networks, network)
        const body = { name, cidr, vpc_network_id, location }
        await printOne(cli, await cli.client.subnetCreate({ project_id: await cli.project() }, body))
      },
    }),
    deleteCommand(subnets, async (cli, subnet_id) => {
      await cli.client.subnetDelete({ project_id: await cli.project(), subnet_id })
      return {}
    }),
  ],
}
