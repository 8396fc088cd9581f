import { command, type GroupSpec } from '../../core/command.ts'
import { listCommand, showCommand } from '../../core/generic-commands.ts'
import { follow } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { vms } from '../vm/resource.ts'
import { reservations } from './resource.ts'

const vmArgument = { syntax: '<vm>', description: 'name or id of the VM', complete: 'vm' } as const

const reservationUse = command<{ ref: string; vm: string }>({
  name: 'use',
  summary: 'move a running VM into a reservation',
  details:
    'The VM is not billed separately while it uses the reservation. The reservation is billed whether or not its GPUs are used.',
  arguments: [refArgument(reservations), vmArgument],
  examples: [`slipway reservation use ${reservations.example} train-7`],
  async run(cli, { ref, vm }) {
    const reservation_id = await idOf(cli, reservations, ref)
    const target = { project_id: await cli.project(), vm_id: await idOf(cli, vms, vm) }
    const { operation } = await cli.client.vmUpdate(target, { action: 'RESERVE', reservation_id })
    await follow(cli, `Moving ${vm} into the reservation`, operation, {})
  },
})

const reservationLeave = command<{ vm: string }>({
  name: 'leave',
  summary: 'move a VM out of its reservation',
  details: 'The VM keeps its GPUs and is billed at the list price.',
  arguments: [vmArgument],
  examples: ['slipway reservation leave train-7'],
  async run(cli, { vm }) {
    const target = { project_id: await cli.project(), vm_id: await idOf(cli, vms, vm) }
    const { operation } = await cli.client.vmUpdate(target, { action: 'UNRESERVE' })
    await follow(cli, `Moving ${vm} out of its reservation`, operation, {})
  },
})

export const reservation: GroupSpec = {
  name: 'reservation',
  summary: 'GPUs that the organization has reserved',
  commands: [
    listCommand(reservations),
    showCommand(reservations, async (cli, reservation_id) =>
      cli.client.reservationGet({ organization_id: await cli.organization(), reservation_id }),
    ),
    reservationUse,
    reservationLeave,
  ],
}
