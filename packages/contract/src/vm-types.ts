/** The catalogue: GPU families and the VM types of each family. */

/** The length of a month in price estimates. */
export const hoursPerMonth = 730

export const families = {
  a40: {
    model: 'A40 48GB PCIe',
    gpuMemoryGb: 48,
    pciId: '10de:2235',
    cpuCores: 6,
    memoryGb: 60,
    nvmeGb: 960,
    networkGbps: 25,
    sizes: [1, 2, 4, 8],
  },
  a100: {
    model: 'A100 40GB PCIe',
    gpuMemoryGb: 40,
    pciId: '10de:20f1',
    cpuCores: 12,
    memoryGb: 120,
    nvmeGb: 960,
    networkGbps: 25,
    sizes: [1, 2, 4, 8],
  },
  'a100-80gb': {
    model: 'A100 80GB PCIe',
    gpuMemoryGb: 80,
    pciId: '10de:20b5',
    cpuCores: 12,
    memoryGb: 120,
    nvmeGb: 960,
    networkGbps: 25,
    sizes: [1, 2, 4, 8],
  },
  'l40s-48gb': {
    model: 'L40S 48GB PCIe',
    gpuMemoryGb: 48,
    pciId: '10de:26b9',
    cpuCores: 8,
    memoryGb: 147,
    nvmeGb: 0,
    networkGbps: 20,
    sizes: [1, 2, 4, 8, 10],
  },
} as const

export type Family = keyof typeof families
export const familyNames = Object.keys(families) as Family[]

export interface VmType {
  name: string
  family: Family
  gpuCount: number
  gpuModel: string
  /** The memory of each GPU. */
  gpuMemoryGb: number
  cpuCores: number
  memoryGb: number
  /** Size of the local NVMe disk. Its data is lost when the VM stops. */
  nvmeGb: number
  networkGbps: number
  /** Only whole-host types can mount shared volumes. */
  isWholeHost: boolean
}

/** A type has its family's resources per GPU, multiplied by the number of GPUs. */
export const vmTypes: VmType[] = familyNames.flatMap((family) => {
  const perGpu = families[family]
  return perGpu.sizes.map((gpuCount) => ({
    name: `${family}.${gpuCount}x`,
    family,
    gpuCount,
    gpuModel: perGpu.model,
    gpuMemoryGb: perGpu.gpuMemoryGb,
    cpuCores: perGpu.cpuCores * gpuCount,
    memoryGb: perGpu.memoryGb * gpuCount,
    nvmeGb: perGpu.nvmeGb * gpuCount,
    networkGbps: perGpu.networkGbps * gpuCount,
    isWholeHost: gpuCount >= 8,
  }))
})

const byName = new Map(vmTypes.map((type) => [type.name, type]))
export const vmTypeNames = vmTypes.map((type) => type.name)

export function vmType(name: string): VmType | undefined {
  return byName.get(name)
}

export function familyOfModel(model: string): Family | undefined {
  return familyNames.find((family) => families[family].model === model)
}

/** Selects the first location where a new VM fits. No location has this name. */
export const anyLocation = 'any'

export const diskTypes = ['persistent-ssd', 'shared-volume'] as const
export type DiskType = (typeof diskTypes)[number]

/** The unit of the price of each product, in the order of price lists. */
export const productUnits: ReadonlyMap<string, 'vm_hour' | 'gb_hour' | 'address_hour'> = new Map([
  ...vmTypeNames.map((name) => [name, 'vm_hour'] as const),
  ...diskTypes.map((name) => [name, 'gb_hour'] as const),
  ['custom-image', 'gb_hour'],
  ['snapshot', 'gb_hour'],
  ['reserved-address', 'address_hour'],
])

/** The maximum read rate and write rate of one disk, in MB/s; null if only the storage limits it. */
export const diskMbps: Record<DiskType, number | null> = { 'persistent-ssd': 1_000, 'shared-volume': null }

/** How many data disks of each type a VM can have. */
export const maxDisksPerVm: Record<DiskType, number> = { 'persistent-ssd': 16, 'shared-volume': 4 }

/** Sizes of an OS disk: the default, which is also the smallest and is included in the VM, and the largest. */
export const standardOsDiskGib = 128
export const maxOsDiskGib = 2048

export const quotaNames = [
  'a40_gpus',
  'a100_gpus',
  'a100-80gb_gpus',
  'l40s-48gb_gpus',
  'vms',
  'disk_gib',
  'shared_volume_tib',
  'firewall_rules',
] as const
export type QuotaName = (typeof quotaNames)[number]

/** Quotas that exist only for organizations, not for projects. */
export const countedQuotaNames = [
  'projects',
  'networks',
  'subnets',
  'access_keys',
  'ssh_keys',
  'members',
  'webhooks',
  'capacity_requests',
  'instance_groups',
  'instance_templates',
  'custom_images',
  'snapshots',
  'captured_gib',
  'reserved_addresses',
] as const
export type CountedQuotaName = (typeof countedQuotaNames)[number]

export const organizationQuotaNames = [...quotaNames, ...countedQuotaNames] as const
export type OrganizationQuotaName = (typeof organizationQuotaNames)[number]

export const gpuQuota = (family: Family): QuotaName => `${family}_gpus`
