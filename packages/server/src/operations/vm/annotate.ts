import type { AnnotationUpdate } from '@slipway/contract'
import { Failure, nameTaken } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { relabelUsage } from '../../store/billing/usage.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { annotateVm } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import { findVm, type VmRow } from '../../store/compute/vms.ts'
import type { ProjectRequester } from '../admission.ts'
import { recordAnnotation } from '../annotations.ts'
import { writeOrRefuse } from '../conflicts.ts'

/** The caller has locked the VM's row. The guest gets the new name at its next start. */
export async function annotate(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  change: AnnotationUpdate,
): Promise<BegunOperation> {
  if (vm.state === 'STATE_DELETING')
    throw new Failure('conflict', `The VM ${vm.name} is being deleted and cannot be changed.`)
  const taken = nameTaken('VM', change.name ?? vm.name)
  await writeOrRefuse({ vms_name: taken }, () => annotateVm(tx, vm.id, change))
  const changed = (await findVm(tx, by.projectId, vm.id))!
  await relabelUsage(tx, [vm.id], changed.name, changed.labels)
  await relabelUsage(tx, [vm.os_disk_id], `${changed.name}-os`, changed.labels)
  return recordAnnotation(tx, by, 'vm', changed, change, await vmViewOf(tx, vm.id))
}
