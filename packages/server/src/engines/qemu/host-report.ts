import { cpus, totalmem } from 'node:os'
import type { HostReport } from '../engine.ts'
import { largestShare } from '../gpu-models.ts'
import type { QemuContext } from './context.ts'
import { canServeVolumes } from './disks/volumes.ts'
import { observe, toStatus } from './observe.ts'

/** Shown to operators in the host report. Keep this list in sync with the documentation. */
const notEnforced = [
  'udp and icmp from outside',
  'filtering between guests of one network',
  'size of shared volumes',
]

export async function hostReport(ctx: QemuContext): Promise<HostReport> {
  const vms = []
  const holders = new Map<string, string>()
  const partlyServed: Record<string, string[]> = {}
  for (const id of await ctx.records.ids()) {
    const seen = await observe(ctx, id)
    if (!seen) continue
    vms.push(toStatus(id, await ctx.fences.generation(id), seen))
    if (seen.power !== 'off') for (const gpu of seen.record.spec.gpus) holders.set(gpu.pciAddress, id)
    if (seen.run && seen.run.notes.length > 0) partlyServed[id] = seen.run.notes
  }
  const disks = []
  for (const id of await ctx.disks.ids()) {
    const disk = await ctx.disks.read(id)
    if (!disk) continue
    disks.push({ id, generation: await ctx.fences.generation(id), sizeGib: disk.sizeGib })
  }
  const captures = []
  for (const id of await ctx.captures.ids())
    captures.push({ id, generation: await ctx.fences.generation(id) })

  const { usable, unusable } = await ctx.gpus.list()
  const { options } = ctx
  return {
    name: ctx.hostName,
    ...hostCapacity(options.scale, usable.length),
    capabilities: {
      engine: 'qemu',
      qemu_version: ctx.qemuVersion,
      architecture: ctx.arch.name,
      accelerator: ctx.verdict.accelerator,
      accelerator_reason: ctx.verdict.reason,
      scale: options.scale,
      address_range: options.addressRange,
      egress: options.egress,
      egress_allow: options.egressAllow,
      uefi: ctx.firmware !== null,
      shared_volumes: await canServeVolumes(),
      isolation: ctx.isolation.describe(),
      not_isolated: ctx.isolation.notIsolated,
      not_enforced: notEnforced,
      partly_served: partlyServed,
      unusable_gpus: unusable,
    },
    gpus: usable.map(({ pciAddress, model, numaNode, iommuGroup, canReset, check }) => {
      const holderVmId = holders.get(pciAddress) ?? null
      const isClean = holderVmId === null && canReset
      return { pciAddress, model, numaNode, iommuGroup, holderVmId, isClean, check }
    }),
    vms,
    disks,
    captures,
  }
}

/**
 * Guests get only the fraction `scale` of their type's cores and memory. The reported capacity is always
 * enough to use all GPUs with any type.
 */
export function hostCapacity(scale: number, gpuCount: number) {
  const memoryGb = totalmem() / 1024 ** 3
  return {
    cpuCores: Math.max(Math.floor(cpus().length / scale), gpuCount * largestShare.cpuCores),
    memoryGb: Math.max(Math.floor(memoryGb / scale), gpuCount * largestShare.memoryGb),
  }
}
