import { type Gpu, type GpuState, gpuStates } from '@slipway/sdk'
import { command, oneOf } from '../../../core/command.ts'
import { type Column, printList } from '../../../output/print.ts'
import { hosts } from '../host/resource.ts'

const columns: Column<Gpu & { host: string }>[] = [
  { name: 'host', value: (gpu) => gpu.host },
  { name: 'pci_address', value: (gpu) => gpu.pci_address },
  { name: 'model', value: (gpu) => gpu.model, hideOrder: 1 },
  { name: 'numa', value: (gpu) => gpu.numa_node, align: 'right', hideOrder: 2 },
  { name: 'state', value: (gpu) => gpu.state, isState: true },
  { name: 'suspect', value: (gpu) => (gpu.suspect ? 'yes' : ''), hideOrder: 3 },
  { name: 'id', value: (gpu) => gpu.id },
  { name: 'vm_id', value: (gpu) => gpu.vm_id, isExtra: true },
]

const gpuMembers: (keyof Gpu | 'host')[] = [
  'id',
  'model',
  'pci_address',
  'numa_node',
  'state',
  'vm_id',
  'suspect',
  'fault_count',
  'last_fault',
  'host',
]

export const adminGpuList = command<{ host?: string; state?: GpuState }>({
  name: 'list',
  summary: 'list GPUs',
  options: [
    { flags: '--host <host>', description: 'only GPUs of this host', complete: 'host' },
    { flags: '--state <state>', ...oneOf(gpuStates) },
  ],
  columns,
  examples: ['slipway admin gpu list --state quarantined'],
  async run(cli, { host, state }) {
    const all = await hosts.list(cli)
    const wanted = host ? all.filter(({ id, name }) => id === host || name === host) : all
    const rows = wanted
      .flatMap((owner) => owner.gpus.map((gpu) => ({ ...gpu, host: owner.name })))
      .filter((gpu) => !state || gpu.state === state)
    await printList(cli, rows, columns, gpuMembers)
  },
})
