export interface PassthroughGpu {
  pciAddress: string
  /** The total size of the GPU's BARs. */
  barBytes: number
  iommuGroup: number | null
}

const gib = 1024 ** 3

/**
 * Every GPU gets its own root port, so that the guest sees the PCIe link. The address window above 4 GiB has
 * room for all BARs, because a datacenter GPU maps its whole memory there.
 */
export function vfioArguments(gpus: PassthroughGpu[], machine: 'x86_64' | 'aarch64'): string[] {
  if (gpus.length === 0) return []
  const args = gpus.flatMap((gpu, index) => [
    '-device',
    `pcie-root-port,id=gpu${index},bus=pcie.0,chassis=${100 + index},slot=${100 + index},io-reserve=0`,
    '-device',
    `vfio-pci,host=${gpu.pciAddress},bus=gpu${index}`,
  ])
  if (machine === 'x86_64') {
    const windowGib = mmioWindowGib(gpus)
    args.push('-global', `q35-pcihost.pci-hole64-size=${windowGib}G`)
    args.push('-fw_cfg', `name=opt/ovmf/X-PciMmio64Mb,string=${windowGib * 1024}`)
  }
  return args
}

/**
 * BARs are aligned to their size, so a window of twice their sum, rounded up to a power of two, always holds
 * them.
 */
export function mmioWindowGib(gpus: PassthroughGpu[]): number {
  const neededGib = (2 * gpus.reduce((sum, gpu) => sum + gpu.barBytes, 0)) / gib
  return 2 ** Math.ceil(Math.log2(Math.max(neededGib, 32)))
}
