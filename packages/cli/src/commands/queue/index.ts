import { confirmLoss } from '../../core/ask.ts'
import { command, type GroupSpec } from '../../core/command.ts'
import { listCommand, showCommand } from '../../core/generic-commands.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { queueCreate, queueGroup, queueStart } from './create.ts'
import { capacityRequests } from './resource.ts'

/** The longest wait that the service allows for one request. */
const waitS = 30

const queueWait = command<{ ref: string }>({
  name: 'wait',
  summary: 'wait until a capacity request is granted or ends',
  arguments: [refArgument(capacityRequests)],
  examples: ['slipway queue wait train-7'],
  async run(cli, { ref }) {
    const target = {
      project_id: await cli.project(),
      capacity_request_id: await idOf(cli, capacityRequests, ref),
    }
    let request = await cli.client.capacityRequestGet({ ...target, wait: waitS })
    while (request.state === 'waiting')
      request = await cli.client.capacityRequestGet({ ...target, wait: waitS })
    await printOne(cli, request, capacityRequests.fields, capacityRequests.columns)
  },
})

const queueClaim = command<{ ref: string } & WaitFlags>({
  name: 'claim',
  summary: 'use the GPUs that are held for a capacity request',
  arguments: [refArgument(capacityRequests)],
  options: waitOptions,
  examples: ['slipway queue claim train-7'],
  async run(cli, input) {
    const capacity_request_id = await idOf(cli, capacityRequests, input.ref)
    const { operation } = await cli.client.capacityRequestClaim({
      project_id: await cli.project(),
      capacity_request_id,
    })
    const finished = await follow(cli, `Creating ${input.ref}`, operation, input)
    if (finished) await printOne(cli, finished.result as object)
  },
})

const queueCancel = command<{ ref: string; yes?: boolean }>({
  name: 'cancel',
  summary: 'cancel a capacity request',
  arguments: [refArgument(capacityRequests)],
  options: [{ flags: '-y, --yes', description: 'skip the confirmation' }],
  examples: ['slipway queue cancel train-7', 'slipway queue cancel train-7 --yes'],
  async run(cli, { ref, yes }) {
    const capacity_request_id = await idOf(cli, capacityRequests, ref)
    await confirmLoss(cli, `Cancel the request for ${ref}? It will lose its position in the queue.`, yes)
    await cli.client.capacityRequestDelete({ project_id: await cli.project(), capacity_request_id })
    cli.note(`Cancelled ${ref}.`)
  },
})

export const queue: GroupSpec = {
  name: 'queue',
  summary: 'capacity requests, which wait for GPUs',
  commands: [
    listCommand(capacityRequests),
    showCommand(capacityRequests, async (cli, capacity_request_id) =>
      cli.client.capacityRequestGet({ project_id: await cli.project(), capacity_request_id }),
    ),
    queueCreate,
    queueGroup,
    queueStart,
    queueWait,
    queueClaim,
    queueCancel,
  ],
}
