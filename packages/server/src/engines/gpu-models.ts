import { families } from '@slipway/contract'

const shares = Object.values(families)

/**
 * Models by PCI id, such as `10de:2235`. The name that a driver uses for a model can change, but the id
 * cannot.
 */
export const modelByPciId = new Map<string, string>(shares.map(({ pciId, model }) => [pciId, model]))

/** The most cores and the most memory per GPU of any VM type. */
export const largestShare = {
  cpuCores: Math.max(...shares.map(({ cpuCores }) => cpuCores)),
  memoryGb: Math.max(...shares.map(({ memoryGb }) => memoryGb)),
}
