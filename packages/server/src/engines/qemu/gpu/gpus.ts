import { EngineError } from '../../engine.ts'
import { type SysfsGpu, scanGpus } from '../../sysfs-gpus.ts'
import type { PassthroughGpu } from './vfio.ts'

export type GpuOption = { model: string; count: number }[] | { pci: string }[]

type HostGpu = Pick<SysfsGpu, 'pciAddress' | 'model' | 'numaNode' | 'iommuGroup' | 'canReset' | 'check'>

/** The PCI domain of declared GPUs, which no real machine uses. */
const declaredDomain = 'dec0'

/**
 * The GPUs that this host offers. Declared GPUs exist only in the configuration; all others are passed
 * through.
 */
export class HostGpus {
  readonly #option: GpuOption
  readonly #sysfsRoot: string

  constructor(option: GpuOption, sysfsRoot: string) {
    this.#option = option
    this.#sysfsRoot = sysfsRoot
  }

  async list(): Promise<{ usable: HostGpu[]; unusable: { pci: string; reason: string }[] }> {
    const declared = this.#declared()
    if (declared.length > 0) return { usable: declared, unusable: [] }
    const found = await scanGpus(this.#sysfsRoot)
    const listed = this.#option.flatMap((entry) => ('pci' in entry ? [entry.pci] : []))
    const wanted = found.filter((gpu) =>
      listed.length > 0 ? listed.includes(gpu.pciAddress) : gpu.isInCatalogue,
    )
    const absent = listed.filter((pci) => !found.some((gpu) => gpu.pciAddress === pci))
    return {
      usable: wanted.filter((gpu) => gpu.problem === ''),
      unusable: [
        ...wanted.flatMap(({ pciAddress: pci, problem: reason }) => (reason ? [{ pci, reason }] : [])),
        ...absent.map((pci) => ({ pci, reason: 'no such NVIDIA GPU in sysfs' })),
      ],
    }
  }

  /** Returns the GPUs to pass to a guest. Throws if another GPU shares an IOMMU group with one of them. */
  async passthrough(pciAddresses: string[]): Promise<PassthroughGpu[]> {
    const real = pciAddresses.filter((address) => !address.startsWith(`${declaredDomain}:`))
    if (real.length === 0) return []
    const found = new Map((await scanGpus(this.#sysfsRoot)).map((gpu) => [gpu.pciAddress, gpu]))
    return real.map((address) => {
      const gpu = found.get(address)
      if (!gpu) throw new EngineError('missing', `no GPU at ${address}`)
      if (gpu.problem) throw new EngineError('rejected', `GPU ${address}: ${gpu.problem}`)
      requireWholeGroup(gpu, real)
      return { pciAddress: address, barBytes: gpu.barBytes, iommuGroup: gpu.iommuGroup }
    })
  }

  #declared(): HostGpu[] {
    return this.#option
      .flatMap((entry) => ('model' in entry ? Array.from({ length: entry.count }, () => entry.model) : []))
      .map((model, index) => ({
        pciAddress: `${declaredDomain}:${(index + 1).toString(16).padStart(2, '0')}:00.0`,
        model,
        numaNode: 0,
        iommuGroup: null,
        canReset: true,
        check: { passed: true, reasons: [] },
      }))
  }
}

function requireWholeGroup(gpu: SysfsGpu, given: string[]): void {
  const missing = gpu.groupGpus.filter((address) => !given.includes(address))
  if (missing.length > 0)
    throw new EngineError(
      'rejected',
      `GPU ${gpu.pciAddress} shares IOMMU group ${gpu.iommuGroup} with ${missing.join(', ')}, so they must be assigned to the same VM`,
    )
}
