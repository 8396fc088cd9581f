import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { GpuCheck } from './engine.ts'
import { modelByPciId } from './gpu-models.ts'

const nvidia = '0x10de'
const pciBridgeClass = '0x06'

interface PciDevice {
  pciAddress: string
  vendor: string
  device: string
  class: string
  driver: string | null
  iommuGroup: number | null
  numaNode: number
  barBytes: number
  canReset: boolean
}

export interface SysfsGpu extends PciDevice {
  check: GpuCheck
  model: string
  /** GPUs that are not in the catalogue are offered only if an operator lists them. */
  isInCatalogue: boolean
  /** All GPUs of the same IOMMU group, including this one. They can only be passed to the same VM. */
  groupGpus: string[]
  /** Why the GPU cannot be passed to a guest; '' if it can. */
  problem: string
}

/** Returns every NVIDIA GPU in sysfs. `problem` is the reason if a GPU cannot be passed through. */
export async function scanGpus(sysfsRoot: string): Promise<SysfsGpu[]> {
  const devices = await readPciDevices(sysfsRoot)
  return Promise.all(
    devices.filter(isGpu).map(async (gpu) => ({
      ...describeGpu(gpu, devices),
      check: await checkGpu(join(sysfsRoot, 'bus/pci/devices', gpu.pciAddress)),
    })),
  )
}

function describeGpu(gpu: PciDevice, devices: PciDevice[]): Omit<SysfsGpu, 'check'> {
  const group = devices.filter(
    (device) => gpu.iommuGroup !== null && device.iommuGroup === gpu.iommuGroup && !isBridge(device),
  )
  const id = `${gpu.vendor.slice(2)}:${gpu.device.slice(2)}`
  return {
    ...gpu,
    model: modelByPciId.get(id) ?? `PCI ${id}`,
    isInCatalogue: modelByPciId.has(id),
    numaNode: Math.max(gpu.numaNode, 0),
    groupGpus: (gpu.iommuGroup === null ? [gpu] : group.filter(isGpu)).map((one) => one.pciAddress),
    problem: problemOf(gpu, group),
  }
}

function problemOf(gpu: PciDevice, group: PciDevice[]): string {
  if (gpu.iommuGroup === null) return 'no IOMMU group: the IOMMU is off in the firmware or the kernel'
  if (gpu.driver !== 'vfio-pci') return `bound to ${gpu.driver ?? 'no driver'}, not to vfio-pci`
  const foreign = group.find((device) => device.driver !== 'vfio-pci' && device.driver !== null)
  if (foreign)
    return `shares IOMMU group ${gpu.iommuGroup} with ${foreign.pciAddress}, bound to ${foreign.driver}`
  return ''
}

async function readPciDevices(sysfsRoot: string): Promise<PciDevice[]> {
  const root = join(sysfsRoot, 'bus/pci/devices')
  const addresses = (await readdir(root).catch(() => [])).sort()
  return Promise.all(
    addresses.map(async (address) => {
      const text = async (file: string) =>
        (await readFile(join(root, address, file), 'utf8').catch(() => '')).trim()
      const link = async (file: string) =>
        readlink(join(root, address, file)).then(
          (target) => basename(target),
          () => null,
        )
      const group = await link('iommu_group')
      return {
        pciAddress: address,
        vendor: await text('vendor'),
        device: await text('device'),
        class: await text('class'),
        driver: await link('driver'),
        iommuGroup: group === null ? null : Number(group),
        numaNode: Number((await text('numa_node')) || -1),
        barBytes: barBytesOf(await text('resource')),
        canReset: (await text('reset_method')) !== '',
      }
    }),
  )
}

/** Every read from a device that has fallen off the bus returns all ones. */
const noDevice = 0xffff

/**
 * Checks that the GPU responds and that its PCIe link has all lanes. The vendor id is read from the
 * configuration space, which comes from the device itself; the file `vendor` is the kernel's cached copy.
 */
async function checkGpu(folder: string): Promise<GpuCheck> {
  const config = await readFile(join(folder, 'config')).catch(() => Buffer.alloc(0))
  if (config.length >= 2 && config.readUInt16LE(0) === noDevice)
    return { passed: false, reasons: ['The GPU does not respond: its PCI configuration space reads ffff.'] }
  const widthIn = async (file: string) => Number(await readFile(join(folder, file), 'utf8').catch(() => ''))
  const [width, widest] = [await widthIn('current_link_width'), await widthIn('max_link_width')]
  const isNarrow = width > 0 && width < widest
  return {
    passed: true,
    reasons: isNarrow ? [`Warning: the PCIe link has ${width} of ${widest} lanes.`] : [],
  }
}

/** The first six lines of `resource` are the BARs: first address, last address, flags. */
function barBytesOf(resource: string): number {
  return resource
    .split('\n')
    .slice(0, 6)
    .map((line) => line.trim().split(/\s+/))
    .filter(([first, last]) => first !== undefined && last !== undefined && BigInt(last) > 0n)
    .reduce((sum, [first, last]) => sum + Number(BigInt(last!) - BigInt(first!) + 1n), 0)
}

/** Display controllers: VGA (0x0300) and 3D (0x0302). */
function isGpu(device: PciDevice): boolean {
  return device.vendor === nvidia && /^0x030[02]/.test(device.class)
}

function isBridge(device: PciDevice): boolean {
  return device.class.startsWith(pciBridgeClass)
}
