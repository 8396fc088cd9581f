import { standardOsDiskGib } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { closeUsage, openUsage } from '../../store/billing/usage.ts'
import type { VmRow } from '../../store/compute/vms.ts'

/**
 * Returns how much larger than the standard size the OS disk is. Only this part is billed and counted as a
 * disk; the standard size is included in the VM.
 */
export const osDiskExcessGib = ({ os_disk_gib }: Pick<VmRow, 'os_disk_gib'>): number =>
  os_disk_gib - standardOsDiskGib

export function osDiskQuota(vm: Pick<VmRow, 'os_disk_gib'>): { disk_gib?: number } {
  const excess = osDiskExcessGib(vm)
  return excess > 0 ? { disk_gib: excess } : {}
}

/** Opens the meter of the OS disk, which is billed from creation to deletion, whether or not the VM runs. */
export async function openOsDiskUsage(tx: Tx, vm: VmRow): Promise<void> {
  const quantity = osDiskExcessGib(vm)
  if (quantity <= 0) return
  await openUsage(tx, {
    projectId: vm.project_id,
    location: vm.location,
    resourceType: 'disk',
    resourceId: vm.os_disk_id,
    resourceName: `${vm.name}-os`,
    labels: vm.labels,
    productName: 'persistent-ssd',
    quantity,
  })
}

export async function closeOsDiskUsage(tx: Tx, vm: VmRow): Promise<void> {
  if (osDiskExcessGib(vm) > 0) await closeUsage(tx, vm.os_disk_id)
}
