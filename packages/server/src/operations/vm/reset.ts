import { EngineError } from '../../engines/engine.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, next, type Outcome, type Work } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import type { ProjectRequester } from '../admission.ts'
import { callOf, engineAt } from '../engine-work.ts'
import { beginVmAction } from './action.ts'
import { bootDeadline, bootVm, finishBoot, whyNotStarted } from './boot.ts'
import { causeOf, changeVmState, leaveToReconciler } from './state.ts'
import { osDiskLost, refOf, requireOsDisk, vmOf } from './vm.ts'

export const admitVmReset = (tx: Tx, by: ProjectRequester, vm: VmRow): Promise<BegunOperation> =>
  beginVmAction(tx, by, vmReset, vm, 'RESET')

export const vmReset: Definition = {
  kind: 'vm-reset',
  name: 'RESET',
  resourceType: 'vm',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: markCrashed },
    { name: 'reset', call: reset },
    { name: 'boot', call: bootVm, onDeadline: bootDeadline },
    { name: 'finish', tx: finishBoot, isShared: true, onUnexpectedState: whyNotStarted },
  ],
  onAbandon: leaveToReconciler,
}

/**
 * Only the VM's generation shows that the reset took place, because the VM is running before and after it.
 */
async function reset(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  requireOsDisk(vm)
  const engine = engineAt(work.services, vm.location)
  await engine.powerVm(refOf(vm), 'reset', callOf(work)).catch((error) => {
    throw error instanceof EngineError && error.kind === 'missing' ? osDiskLost(error) : error
  })
  const status = await engine.inspectVm(refOf(vm), work.signal)
  if (status && status.generation < work.operation.generation)
    throw new EngineError('unavailable', 'the engine did not reset the VM')
  return next()
}

/** Marks the VM as crashed. It may or may not have been reset, but the guest did not respond. */
async function markCrashed(work: Work, tx: Tx): Promise<void> {
  const vm = await vmOf(work, tx)
  await changeVmState(tx, vm, 'STATE_CRASHED', { from: ['STATE_RESETTING'], cause: causeOf(work) })
}
