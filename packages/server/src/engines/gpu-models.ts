import { families } from '@slipway/contract'

const shares = Object.values(families)

/** Models by PCI id, such as `10de:2235`: a driver's name for a model can change, the id cannot. */
export const modelByPciId = new Map<string, string>(shares.map(({ pciId, model }) => [pciId, model]))

/** The most cores and memory that a VM type has for each of its GPUs. */
export const largestShare = {
  cpuCores: Math.max(...shares.map(({ cpuCores }) => cpuCores)),
  memoryGb: Math.max(...shares.map(({ memoryGb }) => memoryGb)),
}
