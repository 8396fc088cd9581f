import type { GpuFault } from '@slipway/sdk'
import { command } from '../../../core/command.ts'
import { type Column, printList, printOne } from '../../../output/print.ts'

const gpuArgument = { syntax: '<gpu>', description: 'id of the GPU' }
const exampleId = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'

const columns: Column<GpuFault>[] = [
  { name: 'at', value: ({ at }) => at },
  { name: 'xid', value: ({ xid }) => xid, align: 'right' },
  { name: 'source', value: ({ source }) => source },
  { name: 'vm_id', value: ({ vm_id }) => vm_id },
]

export const adminGpuFaults = command<{ gpu: string }>({
  name: 'faults',
  summary: 'list the faults of a GPU, newest first',
  details: 'XID 0 means that the host lost the GPU without an error. Faults from guests may be false.',
  arguments: [gpuArgument],
  columns,
  examples: [`slipway admin gpu faults ${exampleId}`],
  async run(cli, { gpu }) {
    const faults = await cli.operator.collect('adminGpuFaultList', { gpu_id: gpu })
    await printList(cli, faults, columns, 'adminGpuFaultList')
  },
})

export const adminGpuCheck = command<{ gpu: string }>({
  name: 'check',
  summary: 'check a GPU that no VM uses; it returns to stock if it passes',
  arguments: [gpuArgument],
  examples: [`slipway admin gpu check ${exampleId}`],
  async run(cli, { gpu }) {
    await printOne(cli, await cli.operator.adminGpuCheck({ gpu_id: gpu }))
  },
})
