import { command } from '../../core/command.ts'
import { labelOption, parseLabels } from '../../core/labels.ts'
import { printOne } from '../../output/print.ts'
import { cidrOption } from './resource.ts'

export const networkCreate = command<{ name: string; cidr: string; label?: string[] }>({
  name: 'create',
  summary: 'create a network',
  arguments: [{ syntax: '<name>', description: 'name of the network' }],
  options: [cidrOption, labelOption],
  examples: ['slipway network create training --cidr 10.20.0.0/16'],
  async run(cli, { name, cidr, label }) {
    const body = { name, cidr, ...(label && { labels: parseLabels(label) }) }
    await printOne(cli, await cli.client.networkCreate({ project_id: await cli.project() }, body))
  },
})
