import type { GpuReport, VmSpec } from '../../engine.ts'
import { modelByPciId } from '../../gpu-models.ts'
import type { IncusContext } from '../context.ts'
import { isClustered } from './members.ts'

/** The part of `GET /1.0/resources` that Slipway uses. */
export interface Resources {
  cpu: { total: number; sockets?: { cores?: { threads?: { numa_node?: number }[] }[] }[] | null }
  memory: { total: number }
  gpu: {
    cards: { pci_address?: string; vendor_id?: string; product_id?: string; numa_node?: number }[] | null
  }
  pci: { devices: { pci_address: string; iommu_group?: number }[] | null }
}

const resourcesMs = 4_000

/** `member` is null for a server without a cluster. */
export const readResources = (ctx: IncusContext, member: string | null, signal: AbortSignal) =>
  ctx.client.get<Resources>('/1.0/resources', {
    signal,
    timeoutMs: resourcesMs,
    ...(member !== null && { query: { target: member } }),
  })

export type CardReport = Omit<GpuReport, 'holderVmId' | 'isClean'>

/** Returns every NVIDIA card. Operators see cards that are not in the catalogue as unusable. */
export function gpusOf(resources: Resources): CardReport[] {
  const groups = new Map(resources.pci.devices?.map((device) => [device.pci_address, device.iommu_group]))
  return (resources.gpu.cards ?? []).flatMap((card) => {
    const { pci_address: pciAddress, vendor_id, product_id } = card
    if (!pciAddress || vendor_id !== '10de') return []
    const id = `${vendor_id}:${product_id}`
    const iommuGroup = groups.get(pciAddress)
    return [
      {
        pciAddress,
        model: modelByPciId.get(id) ?? `PCI ${id}`,
        numaNode: Math.max(0, card.numa_node ?? 0),
        iommuGroup: iommuGroup === undefined || iommuGroup < 0 ? null : iommuGroup,
      },
    ]
  })
}

/** Returns the NUMA nodes on which the VM's cores should run. Containers, which are for tests, have no GPUs. */
export async function numaNodesOfVm(ctx: IncusContext, spec: VmSpec, signal: AbortSignal): Promise<number[]> {
  if (ctx.config.instanceType === 'container' || spec.gpus.length === 0) return []
  const member = (await isClustered(ctx, signal)) ? spec.host : null
  const pciAddresses = spec.gpus.map(({ pciAddress }) => pciAddress)
  return numaNodesOfGpus(await readResources(ctx, member, signal), pciAddresses, spec.cpuCores)
}

/**
 * Returns the NUMA nodes of these GPUs. The list is empty if the member has a single node, or if the nodes
 * have too few cores: a VM whose virtual cores share physical cores is slower than a VM whose cores are far
 * from its GPUs.
 */
export function numaNodesOfGpus(resources: Resources, pciAddresses: string[], cpuCores: number): number[] {
  const threads = (resources.cpu.sockets ?? []).flatMap(({ cores = [] }) =>
    cores.flatMap((core) => core.threads ?? []),
  )
  const nodeOf = ({ numa_node = 0 }: { numa_node?: number }) => numa_node
  const cards = (resources.gpu.cards ?? []).filter(
    ({ pci_address }) => pci_address !== undefined && pciAddresses.includes(pci_address),
  )
  const nodes = new Set(cards.map(nodeOf))
  const isOneNode = new Set(threads.map(nodeOf)).size < 2
  const cores = threads.filter((thread) => nodes.has(nodeOf(thread))).length
  return isOneNode || cores < cpuCores ? [] : [...nodes].sort((a, b) => a - b)
}
