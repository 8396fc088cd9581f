import type { Disk, Vm } from '@slipway/contract'
import { inSeconds } from './time.ts'

export const diskShape = (disk: Disk) => ({
  ...disk,
  size: inGib(disk.size),
  created_at: inSeconds(disk.created_at),
  updated_at: inSeconds(disk.updated_at),
  dns_name: '',
  vips: [],
})

export const attachedDiskShape = (disk: Vm['disks'][number]) => ({
  ...disk,
  size: inGib(disk.size),
  created_at: inSeconds(disk.created_at),
  updated_at: inSeconds(disk.updated_at),
})

/** Clients accept both units in a request and expect GiB in a response. */
export function inGib(size: string): string {
  const tib = /^(\d+)TiB$/.exec(size)?.[1]
  return tib ? `${Number(tib) * 1024}GiB` : size
}
