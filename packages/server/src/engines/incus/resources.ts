import { families } from '@slipway/contract'
import type { GpuReport } from '../engine.ts'

/** What `GET /1.0/resources` says of a member, as far as it is used. */
export interface Resources {
  cpu: { total: number }
  memory: { total: number }
  gpu: {
    cards: { pci_address?: string; vendor_id?: string; product_id?: string; numa_node?: number }[] | null
  }
  pci: { devices: { pci_address: string; iommu_group?: number }[] | null }
}

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
