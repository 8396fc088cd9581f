import type { HealthReason, Vm } from '@slipway/sdk'
import { command, oneOf } from '../../core/command.ts'
import { type WaitFlags, waitOptions } from '../../core/progress.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { type Column, printList } from '../../output/print.ts'
import { vms } from './resource.ts'
import { updateVm } from './update.ts'

const columns: Column<HealthReason>[] = [
  { name: 'gpu', value: ({ gpu_index }) => gpu_index, align: 'right' },
  { name: 'code', value: ({ code }) => code },
  { name: 'source', value: ({ source }) => source },
  { name: 'action', value: ({ action }) => action },
  { name: 'at', value: ({ at }) => at },
  { name: 'message', value: ({ message }) => message, hideOrder: 1 },
]

const members: (keyof HealthReason)[] = ['gpu_index', 'code', 'source', 'action', 'at', 'message']

export const vmHealth = command<{ ref: string; onFault?: Vm['on_gpu_fault'] } & WaitFlags>({
  name: 'health',
  summary: 'show the GPU faults of a VM, or choose what happens after a fault',
  details:
    'A degraded VM needs a reset; an unhealthy VM needs other GPUs (`slipway vm replace`). With `--on-fault replace`, the service moves an unhealthy VM to other GPUs automatically, at most twice a day; local scratch data is lost.',
  arguments: [refArgument(vms)],
  options: [{ flags: '--on-fault <policy>', ...oneOf(['none', 'replace']) }, ...waitOptions],
  columns,
  examples: ['slipway vm health train-7', 'slipway vm health train-7 --on-fault replace'],
  async run(cli, { ref, onFault, ...wait }) {
    if (onFault !== undefined)
      return updateVm(cli, ref, 'Changing the fault policy of', { on_gpu_fault: onFault }, wait)
    const vm_id = await idOf(cli, vms, ref)
    const { name, health } = await cli.client.vmGet({ project_id: await cli.project(), vm_id })
    await printList(cli, health.reasons, columns, members)
    cli.note(`${name} is ${health.status}${health.since ? ` (since ${health.since})` : ''}.`)
  },
})
