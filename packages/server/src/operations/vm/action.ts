import { type VmAction, vmActions } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import type { Definition } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { raiseVmGeneration } from '../../store/compute/vm-changes.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { beginOperation, type ProjectRequester, requireNoOperation } from '../admission.ts'
import { requireUncaptured } from '../capture/capture.ts'
import { changeVmState, vmEvent } from './state.ts'

/**
 * Admits a start, stop, reset or replacement. The VM must have no unfinished operation and be in a state that
 * allows the action; it moves to the action's transitional state.
 */
export async function beginVmAction(
  tx: Tx,
  by: ProjectRequester,
  definition: Definition,
  vm: VmRow,
  action: VmAction,
): Promise<BegunOperation> {
  await requireNoOperation(tx, vm.id, `The VM ${vm.name}`)
  await requireUncaptured(tx, [vm.id], `The VM ${vm.name}`)
  const { from, via } = vmActions[action]
  const cause = { actor: by.actor, requestId: by.requestId, clientAddress: by.clientAddress }
  if (!(await changeVmState(tx, vm, via, { from, skipsEvent: true, cause })))
    throw new Failure(
      'conflict',
      `${action} requires the VM to be in ${from.join(' or ')}; it is in ${vm.state}.`,
    )
  return beginOperation(tx, by, definition, {
    resource: vm,
    generation: await raiseVmGeneration(tx, vm.id),
    request: { action },
    scratch: { from: vm.state, ...(vm.group_id !== null && { memberOf: vm.group_id }) },
    eventType: vmEvent(via),
  })
}
