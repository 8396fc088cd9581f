import type { AnnotationUpdate } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { type Tx, violatedConstraint } from '../../postgres/database.ts'
import { relabelUsage } from '../../store/billing/usage.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { annotateVm } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import { findVm, type VmRow } from '../../store/compute/vms.ts'
import type { ProjectRequester } from '../admission.ts'
import { recordAnnotation } from '../annotations.ts'
import { vmNameTaken } from './place.ts'

/** The VM's row is locked. A guest learns of its new name at its next start. */
export async function annotate(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  change: AnnotationUpdate,
): Promise<BegunOperation> {
  if (vm.state === 'STATE_DELETING')
    throw new Failure('conflict', `The VM ${vm.name} is being deleted: it cannot be changed any more.`)
  await annotateVm(tx, vm.id, change).catch((error) => {
    throw violatedConstraint(error) === 'vms_name' ? vmNameTaken(change.name ?? vm.name) : error
  })
  const changed = (await findVm(tx, by.projectId, vm.id))!
  await relabelUsage(tx, [vm.id], changed.name, changed.labels)
  await relabelUsage(tx, [vm.os_disk_id], `${changed.name}-os`, changed.labels)
  return recordAnnotation(tx, by, 'vm', changed, change, await vmViewOf(tx, vm.id))
}
