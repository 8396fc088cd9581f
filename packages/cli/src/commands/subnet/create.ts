import { command } from '../../core/command.ts'
import { idOf } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { cidrOption, networks } from '../network/resource.ts'

interface SubnetCreateInput {
  name: string
  cidr: string
  network: string
  location: string
}

export const subnetCreate = command<SubnetCreateInput>({
  name: 'create',
  summary: 'create a subnet',
  arguments: [{ syntax: '<name>', description: 'name of the subnet' }],
  options: [
    cidrOption,
    {
      flags: '--network <network>',
      description: 'name or id of the network',
      complete: 'network',
      required: true,
    },
    {
      flags: '--location <location>',
      description: 'location of the subnet',
      complete: 'location',
      required: true,
    },
  ],
  examples: ['slipway subnet create training-a --network training --cidr 10.20.0.0/20 --location us-east1-a'],
  async run(cli, { name, cidr, network, location }) {
    const vpc_network_id = await idOf(cli, networks, network)
    const body = { name, cidr, vpc_network_id, location }
    await printOne(cli, await cli.client.subnetCreate({ project_id: await cli.project() }, body))
  },
})
