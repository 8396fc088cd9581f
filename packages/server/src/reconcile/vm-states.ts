import type { VmState } from '@slipway/contract'
import { EngineError, type HostReport, type ReportedVm, type VmStatus } from '../engines/engine.ts'
import { engineAt } from '../operations/engine-work.ts'
import { changeVmState, findOsDisk, forgetVm, loseOsDisk, releaseGpus } from '../operations/vm/state.ts'
import { refOf } from '../operations/vm/vm.ts'
import { withinLimit } from '../runner/limit.ts'
import type { Services } from '../services.ts'
import { findUnfinishedOperations } from '../store/compute/operations.ts'
import { markVmStopped } from '../store/compute/vm-changes.ts'
import {
  type KnownVm,
  listKnownVms,
  listVmsOnLostHosts,
  lockUnchangedVm,
} from '../store/compute/vm-states.ts'
import { findAnyVm, type VmRow } from '../store/compute/vms.ts'
import { markFirewallLost } from '../store/network/firewalls.ts'

const lookMs = 10_000
const vmsPerLook = 1_000
const firstId = '00000000-0000-0000-0000-000000000000'
const system = { actor: 'system', requestId: '' }
const livingStates: VmState[] = ['STATE_RUNNING', 'STATE_STOPPING', 'STATE_STARTING', 'STATE_RESETTING']
/** Where a VM rests that its host must have. */
const restingStates: VmState[] = ['STATE_RUNNING', 'STATE_CRASHED', 'STATE_SHUTOFF']

/** Compares what these hosts report with what should be there, and settles each difference. */
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
    if (vm.is_hidden) await unlessAway(services, vm.id, () => removeHidden(services, vm.id, signal))
    else if (looksOff(vm, status)) await reconcileVm(services, vm.id, signal)
    else if (vm.state === 'STATE_SHUTOFF' && (status?.power ?? 'off') !== 'off')
      await unlessAway(services, vm.id, () => turnOff(services, vm.id, signal))
    else if (status && status.firewallGeneration < vm.firewall_applied)
      await markFirewallLost(services.database, vm.id)
  }
}

/** VMs of hosts that have not reported for so long. Those under way in an operation wait for its end. */
export async function reconcileLostVms(
  services: Services,
  graceMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let afterId = firstId; ; ) {
    const vms = await listVmsOnLostHosts(services.database, livingStates, graceMs, afterId, vmsPerLook)
    for (const { id } of vms) {
      if (signal.aborted) return
      await reconcileVm(services, id, signal)
    }
    if (vms.length < vmsPerLook) return
    afterId = vms.at(-1)!.id
  }
}

/** A first, cheap look: whether the VM deserves a closer one. */
function looksOff({ state, is_os_disk_lost }: KnownVm, status: ReportedVm | undefined): boolean {
  if (state === 'STATE_UNREACHABLE') return true
  if (restingStates.includes(state) && (status === undefined) !== is_os_disk_lost) return true
  return state === 'STATE_RUNNING' && status?.power !== 'running'
}

/**
 * Brings one VM's state to what inspection shows. The engine is asked between two looks at the row, with no operation under
 * way at either: if one touched the VM meanwhile, nothing is changed.
 */
export async function reconcileVm(services: Services, id: string, signal: AbortSignal): Promise<void> {
  const { database } = services
  const vm = await findAnyVm(database, id)
  if (!vm || vm.deleted_at) return
  if ((await findUnfinishedOperations(database, id)).length > 0) return
  const found = await inspected(services, vm, signal)
  if (!found || (found.state === vm.state && found.hasOsDisk === !vm.os_disk_lost_at)) return
  await database.transaction(async (tx) => {
    if (!(await lockUnchangedVm(tx, id, vm.generation))) return
    const current = (await findAnyVm(tx, id))!
    const cause = { ...system, ...(found.detail && { detail: found.detail }) }
    if (!found.hasOsDisk) return loseOsDisk(tx, current, cause)
    if (current.os_disk_lost_at) return findOsDisk(tx, current, cause)
    if (!(await changeVmState(tx, current, found.state, { cause }))) return
    if (found.state === 'STATE_SHUTOFF') {
      await markVmStopped(tx, id)
      await releaseGpus(tx, current)
    }
  })
}

interface Found {
  state: VmState
  hasOsDisk: boolean
  detail?: string
}

/** Null when nothing can be said now. */
async function inspected(services: Services, vm: VmRow, signal: AbortSignal): Promise<Found | null> {
  const isResting = vm.state === 'STATE_SHUTOFF' || vm.state === 'STATE_CRASHED'
  if (vm.host_state === 'down')
    return isResting
      ? null
      : { state: 'STATE_UNREACHABLE', hasOsDisk: true, detail: 'its host stopped reporting' }
  const status = await inspect(services, vm, signal)
  if (status === 'away') return null
  if (!status)
    return { state: 'STATE_CRASHED', hasOsDisk: false, detail: 'its host no longer has its OS disk' }
  if (isResting) return { state: vm.state, hasOsDisk: true }
  const detail = status.detail ? { detail: status.detail } : {}
  switch (status.power) {
    case 'running':
      return { state: 'STATE_RUNNING', hasOsDisk: true }
    case 'crashed':
      return { state: 'STATE_CRASHED', hasOsDisk: true, ...detail }
    case 'off':
      // A guest that powered itself off: its GPUs are still held, so it has not been stopped.
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
): Promise<VmStatus | null | 'away'> {
  try {
    return await withinLimit(signal, lookMs, (limited) =>
      engineAt(services, vm.location).inspectVm(refOf(vm), limited),
    )
  } catch (error) {
    if (error instanceof EngineError) return 'away'
    throw error
  }
}

/** One VM that its engine cannot bring in order now is no reason to neglect the others. */
async function unlessAway(services: Services, id: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    services.log.warn({ err: error, vm: id }, 'VM not reconciled')
  }
}

/** Shut off by our books, and its GPUs given back: it must not run. A start meanwhile has a newer generation. */
async function turnOff(services: Services, id: string, signal: AbortSignal): Promise<void> {
  if (services.config.operations.restored) return
  const vm = await findAnyVm(services.database, id)
  if (vm?.state !== 'STATE_SHUTOFF') return
  const engine = engineAt(services, vm.location)
  await withinLimit(signal, lookMs, (limited) =>
    engine.powerVm(refOf(vm), 'off', { generation: vm.generation, signal: limited }),
  )
}

/** Deleted while its host was away, and the host is back: now it really goes. */
async function removeHidden(services: Services, id: string, signal: AbortSignal): Promise<void> {
  const vm = await findAnyVm(services.database, id)
  if (!vm?.deleted_at || vm.host_state === 'down') return
  const engine = engineAt(services, vm.location)
  const isThere = await withinLimit(signal, lookMs, async (limited) => {
    await engine.removeVm(refOf(vm), { generation: vm.generation, signal: limited })
    return (await engine.inspectVm(refOf(vm), limited)) !== null
  })
  if (isThere) return
  await services.database.transaction(async (tx) => {
    if (await lockUnchangedVm(tx, id, vm.generation)) await forgetVm(tx, vm)
  })
}
