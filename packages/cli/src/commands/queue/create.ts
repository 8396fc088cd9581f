import type { CapacityRequestCreate } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { command, type OptionSpec } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { idOf } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { groupRequestOf, type NewGroupInput, newGroupOptions } from '../group/create.ts'
import { type NewVmInput, newVmOptions, requestOf } from '../vm/create.ts'
import { vms } from '../vm/resource.ts'
import { capacityRequests, likelyTime } from './resource.ts'

interface QueueInput {
  hold?: boolean
  for?: number
}

const queueOptions: OptionSpec[] = [
  {
    flags: '--hold',
    description:
      'when the GPUs become free, only hold them for 15 minutes; to use them, run `slipway queue claim`',
  },
  {
    flags: '--for <duration>',
    description: 'how long to wait, for example 2d (default: 7d, at most 30d)',
    parse: parseDurationMs,
  },
]

export const queueCreate = command<NewVmInput & QueueInput>({
  name: 'create',
  summary: 'wait for GPUs and then create a VM',
  details:
    'Waiting costs nothing. The VM is created when the request is first in the queue and enough GPUs are free.',
  arguments: [{ syntax: '[name]', description: 'name of the VM (default: a generated name)' }],
  options: [...newVmOptions, ...queueOptions],
  examples: [
    'slipway queue create train-7 --type a100.8x --location us-east1-a',
    'slipway queue create train-7 --type a100.1x --location us-east1-a,eu-north1-a --for 2d',
    'slipway queue create train-7 --type a100.8x --location any --hold',
  ],
  async run(cli, input) {
    const [first] = input.location ?? []
    const locations = (input.location?.length ?? 0) > 1 ? input.location : undefined
    const { request } = await requestOf(cli, input, first)
    await send(cli, input, { vm: request, ...(locations && { locations }) })
  },
})

export const queueGroup = command<NewGroupInput & QueueInput>({
  name: 'group',
  summary: 'wait for GPUs and then create an instance group',
  details:
    'The group gets the GPUs for all its members at the same time, in one location. Until then, smaller requests can be granted first.',
  arguments: [{ syntax: '<name>', description: 'name of the group' }],
  options: [...newGroupOptions, ...queueOptions],
  examples: [
    'slipway queue group trainer --count 4 --template trainer',
    'slipway queue group trainer --count 2 --type a100.8x --location any --image ubuntu24.04-nvidia --ssh-key laptop --for 2d',
  ],
  run: async (cli, input) => send(cli, input, { instance_group: await groupRequestOf(cli, input) }),
})

export const queueStart = command<{ vm: string } & QueueInput>({
  name: 'start',
  summary: 'wait for GPUs and then start a stopped VM',
  arguments: [{ syntax: '<vm>', description: 'name or id of the VM', complete: 'vm' }],
  options: queueOptions,
  examples: ['slipway queue start train-7', 'slipway queue start train-7 --for 12h'],
  run: async (cli, input) => send(cli, input, { start_vm_id: await idOf(cli, vms, input.vm) }),
})

async function send(
  cli: Cli,
  { hold, for: forMs }: QueueInput,
  wanted: CapacityRequestCreate,
): Promise<void> {
  const request = await cli.client.capacityRequestCreate(
    { project_id: await cli.project() },
    {
      ...wanted,
      ...(hold && { on_available: 'hold' as const }),
      ...(forMs !== undefined && { until: new Date(Date.now() + forMs).toISOString() }),
    },
  )
  const at = likelyTime(request)
  const position = request.position === null ? 'a position over 100' : `position ${request.position}`
  if (request.state === 'waiting')
    cli.note(
      `The request is at ${position} in the queue${at && `, and will probably be granted by ${at}`}. To follow the request, run \`slipway queue wait ${request.id}\`.`,
    )
  else cli.note(`The request no longer waits: its state is ${request.state}.`)
  await printOne(cli, request, capacityRequests.fields, capacityRequests.columns)
}
