import { type Family, families, familyOfModel, type GpuState } from '@slipway/contract'

/** A GPU as the engine reports it. */
export interface ReportedGpu {
  pciAddress: string
  model: string
  numaNode: number
  iommuGroup: number | null
  holderVmId: string | null
  isClean: boolean
  check?: { passed: boolean }
}

export interface KnownGpu {
  pciAddress: string
  state: GpuState
  isHeldBack: boolean
  /** True if the GPU needs a check before it is free again. */
  isSuspect: boolean
}

export interface UnusableGpu {
  pci_address: string
  reason: string
}

/**
 * What a host can run, according to its report. A host serves one family: the one that most of its GPUs
 * belong to.
 */
interface HostShape {
  family: Family | ''
  /** The number of GPUs for which the host has enough cores and memory. */
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
  const family = mostCommonFamily(report.gpus)
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

function mostCommonFamily(gpus: ReportedGpu[]): Family | '' {
  const counts = new Map<Family, number>()
  for (const { model } of gpus) {
    const family = familyOfModel(model)
    if (family) counts.set(family, (counts.get(family) ?? 0) + 1)
  }
  const [mostCommon] = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
  return mostCommon?.[0] ?? ''
}

/**
 * GPUs of one IOMMU group can only be passed through together. GPUs that share a group are excluded, because
 * counts of free GPUs do not consider groups.
 */
function whyUnusable(gpu: ReportedGpu, all: ReportedGpu[], family: Family | ''): string | null {
  const own = familyOfModel(gpu.model)
  if (!own) return `no VM type uses the model ${gpu.model}`
  if (own !== family) return `the host serves the family ${family}, but this GPU belongs to ${own}`
  const isShared =
    gpu.iommuGroup !== null &&
    all.some((other) => other.pciAddress !== gpu.pciAddress && other.iommuGroup === gpu.iommuGroup)
  return isShared ? `shares the IOMMU group ${gpu.iommuGroup} with another GPU` : null
}

/**
 * Returns a GPU's state after a report; `reported` is null if the GPU is missing or unusable. A report never
 * frees a GPU that a VM uses, or that waits for a reset, a check or an operator. A GPU that fails its check
 * is quarantined.
 */
export function gpuStateAfterReport(known: KnownGpu | null, reported: ReportedGpu | null): GpuState {
  if (known?.state === 'claimed') return 'claimed'
  if (!reported) return 'gone'
  const hasFailed = reported.check?.passed === false
  if (known && known.state !== 'gone') return hasFailed ? 'quarantined' : known.state
  const isReady =
    reported.isClean && reported.holderVmId === null && !known?.isHeldBack && !known?.isSuspect && !hasFailed
  return isReady ? 'free' : 'quarantined'
}
