import { command } from '../../core/command.ts'
import { follow, type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { vms } from '../vm/resource.ts'
import { addresses } from './resource.ts'

export const addressAssign = command<{ ref: string; vm: string } & WaitFlags>({
  name: 'assign',
  summary: 'assign a reserved address to a VM',
  details:
    'The address replaces the VM’s public address. If the replaced address is reserved, it stays reserved without a VM. If another VM uses the new address, that VM gets a dynamic address first. Open connections to the replaced addresses are closed.',
  arguments: [refArgument(addresses), { ...refArgument(vms), key: 'vm' }],
  options: waitOptions,
  examples: ['slipway address assign gateway train-7'],
  async run(cli, { ref, vm, ...wait }) {
    const [address_id, vm_id] = await Promise.all([idOf(cli, addresses, ref), idOf(cli, vms, vm)])
    const target = { project_id: await cli.project(), address_id }
    const { operation } = await cli.client.addressAssign(target, { vm_id })
    await follow(cli, `Assigning ${ref} to ${vm}`, operation, wait)
  },
})

export const addressUnassign = command<{ ref: string } & WaitFlags>({
  name: 'unassign',
  summary: 'unassign a reserved address from its VM',
  details: 'The VM gets a dynamic address instead. Open connections to the VM are closed.',
  arguments: [refArgument(addresses)],
  options: waitOptions,
  examples: ['slipway address unassign gateway'],
  async run(cli, { ref, ...wait }) {
    const address_id = await idOf(cli, addresses, ref)
    const { operation } = await cli.client.addressUnassign({ project_id: await cli.project(), address_id })
    await follow(cli, `Unassigning ${ref}`, operation, wait)
  },
})
