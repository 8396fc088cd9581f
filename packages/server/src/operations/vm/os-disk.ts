import { osDiskGib } from '@slipway/contract'
import { closeUsages, openUsages } from '../../store/billing/usage.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import type { Tx } from '../../store/database.ts'

/** An OS disk is part of its VM up to the size that every VM has; what is more counts, and is billed, as a disk. */
export const osDiskExcessGib = ({ os_disk_gib }: Pick<VmRow, 'os_disk_gib'>): number =>
  os_disk_gib - osDiskGib

/** What it takes of the quota of disks. */
export function osDiskQuota(vm: Pick<VmRow, 'os_disk_gib'>): { disk_gib?: number } {
  const excess = osDiskExcessGib(vm)
  return excess > 0 ? { disk_gib: excess } : {}
}

const isLarger = (vm: VmRow) => osDiskExcessGib(vm) > 0

/** From creation to deletion, whether or not the VM runs. */
export async function openOsDiskUsages(tx: Tx, vms: VmRow[]): Promise<void> {
  const larger = vms.filter(isLarger)
  if (larger.length === 0) return
  await openUsages(
    tx,
    larger.map((vm) => ({
      projectId: vm.project_id,
      location: vm.location,
      resourceType: 'disk',
      resourceId: vm.os_disk_id,
      resourceName: `${vm.name}-os`,
      labels: vm.labels,
      productName: 'persistent-ssd',
      quantity: osDiskExcessGib(vm),
    })),
  )
}

export const closeOsDiskUsages = (tx: Tx, vms: VmRow[]): Promise<void> =>
  closeUsages(
    tx,
    vms.filter(isLarger).map(({ os_disk_id }) => os_disk_id),
  )
