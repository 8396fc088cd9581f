import { classifySample, coversWindow, warnedAheadS } from '../domain/guest/idle.ts'
import type { VmSample } from '../engines/engine.ts'
import { admitVmStop } from '../operations/vm/stop.ts'
import type { Tx } from '../postgres/database.ts'
import { time } from '../postgres/time.ts'
import type { Services } from '../services.ts'
import { lockVm } from '../store/compute/vms.ts'
import { emit, system } from '../store/events/events.ts'
import {
  countReportedSamples,
  listWatchedVms,
  lockWatchedVm,
  markBusy,
  markIdle,
  markIdleAnnounced,
  type WatchedVm,
} from '../store/metrics/idle.ts'

/** Checks the new samples of VMs with an idle policy, and announces or stops VMs that have been idle for long enough. */
export async function applyIdlePolicies(
  { database, log }: Services,
  location: string,
  samples: VmSample[],
): Promise<void> {
  const watched = await listWatchedVms(database, location)
  if (watched.length === 0) return
  const guestOf = new Map(samples.map(({ vmId, guest }) => [vmId, guest]))
  for (const vm of watched) {
    const verdict = classifySample(vm.policy, vm.gpu_count, guestOf.get(vm.id) ?? null)
    if (verdict === 'busy') await markBusy(database, vm.id)
    else if (verdict === 'idle' && !vm.idle_since) await markIdle(database, vm.id)
    else if (isWindowOver(vm))
      await database
        .transaction((tx) => announceOrStop(tx, vm.id))
        .catch((error) => log.info({ err: error, vm: vm.id }, 'idle VM not stopped yet, will retry'))
  }
}

/**
 * Returns whether the policy's window has passed since the VM became idle. If no sample has shown the VM as idle, the
 * window begins when the policy began to apply to the VM.
 */
const isWindowOver = ({ idle_since, watched_since, policy, now }: WatchedVm): boolean =>
  now.getTime() - (idle_since ?? watched_since).getTime() >= policy.window_seconds * 1000

/** Announces the stop, then stops the VM. Missing samples in the window prevent both, even after the announcement. */
async function announceOrStop(tx: Tx, id: string): Promise<void> {
  const vm = await lockWatchedVm(tx, id)
  if (!vm || !isWindowOver(vm)) return
  const { policy, idle_since, stops_at, now } = vm
  const from = new Date(now.getTime() - policy.window_seconds * 1000)
  const isKnown = idle_since !== null && coversWindow(await countReportedSamples(tx, id, from), policy)
  if (!isKnown) return vm.is_announced ? undefined : announce(tx, vm, 'vm.idle_unknown', null)
  if (policy.action === 'notify') return vm.is_announced ? undefined : announce(tx, vm, 'vm.idle', null)
  if (!stops_at) return announce(tx, vm, 'vm.idle_stopping', new Date(now.getTime() + warnedAheadS * 1000))
  if (stops_at > now) return
  const row = await lockVm(tx, { projectId: vm.project_id, id })
  if (row) await admitVmStop(tx, { ...system, projectId: vm.project_id }, row)
}

async function announce(
  tx: Tx,
  { id, project_id, name, labels, policy, idle_since }: WatchedVm,
  type: 'vm.idle' | 'vm.idle_stopping' | 'vm.idle_unknown',
  stopsAt: Date | null,
): Promise<void> {
  await markIdleAnnounced(tx, id, stopsAt)
  const data = {
    ...(type === 'vm.idle_unknown'
      ? { window_seconds: policy.window_seconds }
      : { idle_since: time(idle_since) }),
    ...(stopsAt && { stops_at: time(stopsAt) }),
  }
  await emit(tx, {
    type,
    resourceType: 'vm',
    resourceId: id,
    projectId: project_id,
    data: { name, labels, ...data },
  })
}
