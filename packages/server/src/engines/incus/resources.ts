import { families } from '@slipway/contract'
import type { GpuReport } from '../engine.ts'
import type { IncusContext } from './context.ts'

/** What `GET /1.0/resources` says of a member, as far as it is used. */
export interface Resources {
  cpu: { total: number; sockets?: { cores?: { threads?: { numa_node?: number }[] }[] }[] | null }
  memory: { total: number }
  gpu: {
    cards: { pci_address?: string; vendor_id?: string; product_id?: string; numa_node?: number }[] | null
  }
  pci: { devices: { pci_address: string; iommu_group?: number }[] | null }
}

const resourcesMs = 10_000

/** Asked of the member itself; null is a server alone. */
export const readResources = (ctx: IncusContext, member: string | null, signal: AbortSignal) =>
  ctx.client.get<Resources>('/1.0/resources', {
    signal,
    timeoutMs: resourcesMs,
    ...(member !== null && { query: { target: member } }),
  })

/** By PCI id: a driver's name for a model changes, and is not there without a driver. */
const models = new Map(Object.values(families).map(({ pciId, model }): [string, string] => [pciId, model]))

export type CardReport = Omit<GpuReport, 'holderVmId' | 'isClean'>

/** Every NVIDIA card, also one that the catalogue does not know: operators see it as unusable. */
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
        model: models.get(id) ?? `PCI ${id}`,
        numaNode: Math.max(0, card.numa_node ?? 0),
        iommuGroup: iommuGroup === undefined || iommuGroup < 0 ? null : iommuGroup,
      },
    ]
  })
}

/**
 * The NUMA nodes that have these GPUs, for the VM's cores to be beside them. None where the member has a single node, or
 * where those nodes have too few cores: a VM that is far from its GPUs is better than one that shares a core with itself.
 */
export function nodesBeside(resources: Resources, pciAddresses: string[], cpuCores: number): number[] {
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
