import type { Vm } from '@slipway/sdk'

/** Returns the data disks of the VMs, without repetition: several VMs can have the same disk. */
export function dataDisksOf(vms: Vm[]): Vm['disks'] {
  const data = vms.flatMap(({ disks }) => disks.filter(({ attachment_type }) => attachment_type === 'data'))
  return [...new Map(data.map((disk) => [disk.id, disk])).values()]
}
