import type { VmState } from '@slipway/contract'
import { zeroUuid } from '../domain/ids.ts'
import { EngineError, type HostReport, type ReportedVm, type VmStatus } from '../engines/engine.ts'
import { emitUnassigned } from '../operations/address/events.ts'
import { engineAt } from '../operations/engine-work.ts'
import {
  changeVmState,
  forgetVm,
  markOsDiskFound,
  markOsDiskLost,
  releaseGpus,
} from '../operations/vm/state.ts'
import { refOf } from '../operations/vm/vm.ts'
import { withinLimit } from '../runner/limit.ts'
import type { Services } from '../services.ts'
import { lockUnfinishedOperations } from '../store/compute/operations.ts'
import { clearVmSshDestination } from '../store/compute/vm-changes.ts'
import {
  type KnownVm,
  listKnownVms,
  listVmsOnLostHosts,
  lockUnchangedVm,
} from '../store/compute/vm-states.ts'
import { findAnyVm, type VmRow } from '../store/compute/vms.ts'
import { markFirewallLost } from '../store/network/firewalls.ts'

const callMs = 10_000
const vmsPerRead = 1_000
const system = { actor: 'system', requestId: '' }
const activeStates: VmState[] = ['STATE_RUNNING', 'STATE_STOPPING', 'STATE_STARTING', 'STATE_RESETTING']
/** In these states, the host must have the VM, unless an operation is changing it. */
const stableStates: VmState[] = ['STATE_RUNNING', 'STATE_CRASHED', 'STATE_SHUTOFF']

/** Compares the VMs that these hosts report with the database, and acts on each difference. */
export async function reconcileVms(
  services: Services,
  location: string,
  reports: HostReport[],
  signal: AbortSignal,
): Promise<void> {
  const reported = new Map(reports.flatMap(({ vms }) => vms.map((vm) => [vm.id, vm] as const)))
  const hosts = reports.map(({ name }) => name)
  for (const vm of await listKnownVms(services.database, location, hosts)) {
    signal.throwIfAborted()
    const status = reported.get(vm.id)
    if (vm.is_hidden) await logEngineErrors(services, vm.id, () => removeHidden(services, vm.id, signal))
    else if (needsInspection(vm, status)) await reconcileVm(services, vm.id, signal)
    else if (vm.state === 'STATE_SHUTOFF' && (status?.power ?? 'off') !== 'off')
      await logEngineErrors(services, vm.id, () => turnOff(services, vm.id, signal))
    else if (status && status.firewallGeneration < vm.firewall_applied)
      await markFirewallLost(services.database, vm.id)
  }
}

/** Reconciles the VMs of hosts that have not reported for `graceMs`. VMs with an unfinished operation are skipped. */
export async function reconcileLostVms(
  services: Services,
  graceMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let afterId = zeroUuid; ; ) {
    const vms = await listVmsOnLostHosts(services.database, activeStates, graceMs, afterId, vmsPerRead)
    for (const { id } of vms) {
      if (signal.aborted) return
      await reconcileVm(services, id, signal)
    }
    if (vms.length < vmsPerRead) return
    afterId = vms.at(-1)!.id
  }
}

/** Returns whether the report differs from the database, so that the VM must be inspected. */
function needsInspection({ state, is_os_disk_lost }: KnownVm, status: ReportedVm | undefined): boolean {
  if (state === 'STATE_UNREACHABLE') return true
  if (stableStates.includes(state) && (status === undefined) !== is_os_disk_lost) return true
  return state === 'STATE_RUNNING' && status?.power !== 'running'
}

/**
 * Changes a VM's state to what inspection shows. The row is read before and after the inspection. If an
 * operation has changed the VM in between, nothing is written.
 */
export async function reconcileVm(services: Services, id: string, signal: AbortSignal): Promise<void> {
  const { database } = services
  const vm = await findAnyVm(database, id)
  if (!vm || vm.deleted_at) return
  if ((await lockUnfinishedOperations(database.withoutTransaction, id)).length > 0) return
  const found = await findState(services, vm, signal)
  if (!found || (found.state === vm.state && found.hasOsDisk === !vm.os_disk_lost_at)) return
  await database.transaction(async (tx) => {
    if (!(await lockUnchangedVm(tx, id, vm.generation))) return
    const current = (await findAnyVm(tx, id))!
    const cause = { ...system, ...(found.detail && { detail: found.detail }) }
    if (!found.hasOsDisk) return markOsDiskLost(tx, current, cause)
    if (current.os_disk_lost_at) return markOsDiskFound(tx, current, cause)
    if (!(await changeVmState(tx, current, found.state, { cause }))) return
    if (found.state === 'STATE_SHUTOFF') {
      await clearVmSshDestination(tx, id)
      await releaseGpus(tx, current)
    }
  })
}

interface FoundState {
  state: VmState
  hasOsDisk: boolean
  detail?: string
}

/** Returns null if the state is currently unknown. */
async function findState(services: Services, vm: VmRow, signal: AbortSignal): Promise<FoundState | null> {
  const isStopped = vm.state === 'STATE_SHUTOFF' || vm.state === 'STATE_CRASHED'
  if (vm.host_state === 'down')
    return isStopped
      ? null
      : { state: 'STATE_UNREACHABLE', hasOsDisk: true, detail: 'its host stopped reporting' }
  const status = await inspect(services, vm, signal)
  if (status === 'unavailable') return null
  if (!status)
    return { state: 'STATE_CRASHED', hasOsDisk: false, detail: 'its host no longer has its OS disk' }
  if (isStopped) return { state: vm.state, hasOsDisk: true }
  const detail = status.detail ? { detail: status.detail } : {}
  switch (status.power) {
    case 'running':
      return { state: 'STATE_RUNNING', hasOsDisk: true }
    case 'crashed':
      return { state: 'STATE_CRASHED', hasOsDisk: true, ...detail }
    case 'off':
      // A guest that powered itself off still holds its GPUs, so it counts as crashed, not as stopped.
      return vm.state === 'STATE_UNREACHABLE'
        ? { state: 'STATE_SHUTOFF', hasOsDisk: true, ...detail }
        : { state: 'STATE_CRASHED', hasOsDisk: true, detail: 'the guest powered off by itself' }
    default:
      return null
  }
}

async function inspect(
  services: Services,
  vm: VmRow,
  signal: AbortSignal,
): Promise<VmStatus | null | 'unavailable'> {
  try {
    return await withinLimit(signal, callMs, (limited) =>
      engineAt(services, vm.location).inspectVm(refOf(vm), limited),
    )
  } catch (error) {
    if (error instanceof EngineError) return 'unavailable'
    throw error
  }
}

/** Logs an engine error and continues, so that the other VMs are reconciled. */
async function logEngineErrors(services: Services, id: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    services.log.warn({ err: error, vm: id }, 'VM not reconciled, will retry')
  }
}

/**
 * Powers off a VM that is STATE_SHUTOFF in the database and so has no GPUs. If the VM is started in the
 * meantime, its generation is newer, and the engine refuses this call.
 */
async function turnOff(services: Services, id: string, signal: AbortSignal): Promise<void> {
  if (services.config.operations.restored) return
  const vm = await findAnyVm(services.database, id)
  if (vm?.state !== 'STATE_SHUTOFF') return
  const engine = engineAt(services, vm.location)
  await withinLimit(signal, callMs, (limited) =>
    engine.powerVm(refOf(vm), 'off', { generation: vm.generation, signal: limited }),
  )
}

/** Removes a VM that was deleted while its host was down. */
async function removeHidden(services: Services, id: string, signal: AbortSignal): Promise<void> {
  const vm = await findAnyVm(services.database, id)
  if (!vm?.deleted_at || vm.host_state === 'down') return
  const engine = engineAt(services, vm.location)
  const stillExists = await withinLimit(signal, callMs, async (limited) => {
    await engine.removeVm(refOf(vm), { generation: vm.generation, signal: limited })
    return (await engine.inspectVm(refOf(vm), limited)) !== null
  })
  if (stillExists) return
  await services.database.transaction(async (tx) => {
    if (!(await lockUnchangedVm(tx, id, vm.generation))) return
    await forgetVm(tx, vm)
    await emitUnassigned(tx, vm, system)
  })
}
