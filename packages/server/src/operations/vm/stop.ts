import type { VmState } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { clearExpiredTtl, clearVmSshDestination } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import type { ProjectRequester } from '../admission.ts'
import { callOf, engineAt, longestPauseMs, nextInspectionMs } from '../engine-work.ts'
import { beginVmAction } from './action.ts'
import { causeOf, changeVmState, leaveToReconciler, releaseGpus } from './state.ts'
import { refOf, vmOf } from './vm.ts'

/** How long a guest may take to shut down before it is powered off. */
const graceMs = 90_000

export const admitVmStop = (tx: Tx, by: ProjectRequester, vm: VmRow): Promise<BegunOperation> =>
  beginVmAction(tx, by, vmStop, vm, 'STOP')

export const vmStop: Definition = {
  kind: 'vm-stop',
  name: 'STOP',
  resourceType: 'vm',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: restoreState },
    { name: 'shut_down', call: shutDown },
    { name: 'power_off', call: powerOff },
    { name: 'finish', tx: finish },
  ],
  onAbandon: leaveToReconciler,
}

/** Asks the guest to shut down. */
export async function shutDown(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  if (vm.os_disk_lost_at) return next()
  const engine = engineAt(work.services, vm.location)
  const status = await engine.inspectVm(refOf(vm), work.signal)
  if (status?.power === 'running' || status?.power === 'booting')
    await engine.powerVm(refOf(vm), 'shutdown', callOf(work))
  return next()
}

/** Waits for the guest to shut down, and powers it off when the time is up or the guest has crashed. */
export async function powerOff(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  if (vm.os_disk_lost_at) return next()
  const engine = engineAt(work.services, vm.location)
  const status = await engine.inspectVm(refOf(vm), work.signal)
  if (!status || status.power === 'off') return next()
  const askedAtMs = Number(work.scratch.askedAtMs ?? work.nowMs)
  // If the guest is still running, the engine may have lost the request: send it again.
  if (status.power === 'running') await engine.powerVm(refOf(vm), 'shutdown', callOf(work))
  if (status.power === 'crashed' || work.nowMs - askedAtMs >= graceMs) {
    await engine.powerVm(refOf(vm), 'off', callOf(work))
    const after = await engine.inspectVm(refOf(vm), work.signal)
    return !after || after.power === 'off' ? next() : wait(nextInspectionMs(askedAtMs, work.nowMs))
  }
  // The pause is limited, so that the VM is powered off in time.
  return wait(Math.min(status.etaMs ?? nextInspectionMs(askedAtMs, work.nowMs), longestPauseMs), {
    askedAtMs,
  })
}

async function finish(work: Work, tx: Tx): Promise<Outcome> {
  const vm = await vmOf(work, tx)
  if (await changeVmState(tx, vm, 'STATE_SHUTOFF', { cause: causeOf(work) })) {
    await clearVmSshDestination(tx, vm.id)
    await clearExpiredTtl(tx, vm.id)
    await releaseGpus(tx, vm)
  }
  return done(await vmViewOf(tx, work.operation.resource_id))
}

async function restoreState(work: Work, tx: Tx): Promise<void> {
  const vm = await vmOf(work, tx)
  await changeVmState(tx, vm, work.scratch.from as VmState, {
    from: ['STATE_STOPPING'],
    cause: causeOf(work),
  })
}
