import type { GpuFaultPolicy } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { setOnGpuFault } from '../../store/fleet/gpu-health.ts'
import type { ProjectRequester } from '../admission.ts'
import { recordAnnotation } from '../annotations.ts'

/** Changes what happens when a GPU is unhealthy. The caller has locked the VM. */
export async function changeOnGpuFault(
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  policy: GpuFaultPolicy,
): Promise<BegunOperation> {
  if (vm.state === 'STATE_DELETING')
    throw new Failure('conflict', `The VM ${vm.name} is being deleted and cannot be changed.`)
  await setOnGpuFault(tx, vm.id, policy)
  return recordAnnotation(tx, by, 'vm', vm, { on_gpu_fault: policy }, await vmViewOf(tx, vm.id))
}
