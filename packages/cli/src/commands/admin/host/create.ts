import { command } from '../../../core/command.ts'
import { UsageError } from '../../../errors/cli-error.ts'
import { printOne } from '../../../output/print.ts'
import { hosts } from './resource.ts'

interface HostCreateInput {
  name: string
  location: string
  gpus?: string
}

export const adminHostCreate = command<HostCreateInput>({
  name: 'create',
  summary: 'register a host',
  arguments: [{ syntax: '<name>', description: 'name of the host' }],
  options: [
    { flags: '--location <location>', description: 'location of the host', required: true },
    {
      flags: '--gpus <count x model>',
      description: 'GPUs to simulate, for example "8 x A40 48GB PCIe"; only in a simulated location',
    },
  ],
  examples: ['slipway admin host create rack4-1 --location us-east1-a --gpus "8 x A40 48GB PCIe"'],
  async run(cli, { name, location, gpus }) {
    const body = { name, location, gpus: gpus === undefined ? undefined : parseGpus(gpus) }
    await printOne(cli, await cli.operator.adminHostCreate(body), hosts.fields)
  },
})

function parseGpus(text: string): { count: number; model: string } {
  const match = /^(\d+) ?x ?(.+)$/.exec(text)
  if (!match)
    throw new UsageError('--gpus has an invalid format. Expected, for example, "8 x A40 48GB PCIe".')
  return { count: Number(match[1]), model: match[2]! }
}
