import type { DiskType } from '@slipway/contract'

const gibPerTib = 1024
const sizePattern = /^([1-9][0-9]{0,8})(GiB|TiB)$/
const maxSsdGib = 10 * gibPerTib
const maxSharedTib = 1000

/** Responses show the text that the client sent; this number is only for calculations. */
export function parseDiskSize(text: string): { gib: number } | null {
  const parts = sizePattern.exec(text)
  if (!parts) return null
  return { gib: Number(parts[1]) * (parts[2] === 'TiB' ? gibPerTib : 1) }
}

/** Returns why the size is invalid for this type of disk, or null if it is valid. */
export function diskSizeProblem(type: DiskType, text: string): string | null {
  const size = parseDiskSize(text)
  if (!size) return 'must be a whole number followed by GiB or TiB, such as 100GiB or 2TiB'
  if (type === 'persistent-ssd') {
    return size.gib <= maxSsdGib ? null : 'must be from 1GiB to 10TiB for a persistent-ssd'
  }
  const isWholeTib = size.gib % gibPerTib === 0
  return isWholeTib && size.gib <= maxSharedTib * gibPerTib
    ? null
    : 'must be from 1TiB to 1000TiB, in whole TiB, for a shared-volume'
}

/** 1 GiB is billed as 1 GB, and 1 TiB as 1024 GB. */
export function sizeGb(gib: number): number {
  return gib
}

export function sizeTib(gib: number): number {
  return Math.ceil(gib / gibPerTib)
}
