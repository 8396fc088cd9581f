import { type Family, families, familyOfModel, type GpuState } from '@slipway/contract'

/** Of what an engine says about a GPU. */
export interface ReportedGpu {
  pciAddress: string
  model: string
  numaNode: number
  iommuGroup: number | null
  holderVmId: string | null
  isClean: boolean
}

export interface KnownGpu {
  pciAddress: string
  state: GpuState
  isHeldBack: boolean
}

export interface UnusableGpu {
  pci_address: string
  reason: string
}

/** What a report makes of a host. A host serves one family: that of most of its GPUs. */
export interface HostShape {
  family: Family | ''
  /** How many GPUs its cores and memory can serve with their full share. */
  usableGpus: number
  usable: ReportedGpu[]
  unusable: UnusableGpu[]
}

export function shapeOf(report: {
  cpuCores: number
  memoryGb: number
  gpus: ReportedGpu[]
  isClosed?: boolean
}): HostShape {
  const family = commonestFamily(report.gpus)
  const usable: ReportedGpu[] = []
  const unusable: UnusableGpu[] = []
  for (const gpu of report.gpus) {
    const reason = whyUnusable(gpu, report.gpus, family)
    if (reason) unusable.push({ pci_address: gpu.pciAddress, reason })
    else usable.push(gpu)
  }
  const share = family && families[family]
  const usableGpus =
    share && !report.isClosed
      ? Math.min(Math.floor(report.cpuCores / share.cpuCores), Math.floor(report.memoryGb / share.memoryGb))
      : 0
  return { family, usableGpus, usable, unusable }
}

function commonestFamily(gpus: ReportedGpu[]): Family | '' {
  const counts = new Map<Family, number>()
  for (const { model } of gpus) {
    const family = familyOfModel(model)
    if (family) counts.set(family, (counts.get(family) ?? 0) + 1)
  }
  const [commonest] = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
  return commonest?.[0] ?? ''
}

/**
 * GPUs of one IOMMU group can only be passed through together. Free counts know nothing of groups, so such GPUs are
 * left out rather than counted as places that are none.
 */
function whyUnusable(gpu: ReportedGpu, all: ReportedGpu[], family: Family | ''): string | null {
  const own = familyOfModel(gpu.model)
  if (!own) return `no VM type has the model ${gpu.model}`
  if (own !== family) return `the host serves ${family}, and this is a GPU of ${own}`
  const isShared =
    gpu.iommuGroup !== null &&
    all.some((other) => other.pciAddress !== gpu.pciAddress && other.iommuGroup === gpu.iommuGroup)
  return isShared ? `shares the IOMMU group ${gpu.iommuGroup} with another GPU` : null
}

/**
 * What a GPU becomes by a report in which it is `reported`, or missing or unusable (null). A report takes capacity
 * away; it never frees what a VM holds, nor what waits for a reset or for an operator.
 */
export function gpuStateAfterReport(known: KnownGpu | null, reported: ReportedGpu | null): GpuState {
  if (known?.state === 'claimed') return 'claimed'
  if (!reported) return 'gone'
  if (known && known.state !== 'gone') return known.state
  const isReady = reported.isClean && reported.holderVmId === null && !known?.isHeldBack
  return isReady ? 'free' : 'quarantined'
}
