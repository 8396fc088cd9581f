import type { VmState } from '@slipway/contract'
import { EngineError, type HostReport, type VmStatus } from '../engines/engine.ts'
import { engineAt } from '../operations/engine-work.ts'
import { changeVmState, forgetVm, releaseGpus } from '../operations/vm/state.ts'
import { refOf } from '../operations/vm/vm.ts'
import type { Services } from '../services.ts'
import { listKnownVms, listVmsOnLostHosts, lockUnchangedVm } from '../store/compute/vm-states.ts'
import { findAnyVm, markVmStopped, type VmRow } from '../store/compute/vms.ts'
import { markFirewallLost } from '../store/network/firewalls.ts'

const lookMs = 10_000
const system = { actor: 'system', requestId: '' }
const livingStates: VmState[] = ['STATE_RUNNING', 'STATE_STOPPING', 'STATE_STARTING', 'STATE_RESETTING']

/** Compares what these hosts report with what should be there, and settles each difference. */
export async function reconcileVms(
  services: Services,
  location: string,
  reports: HostReport[],
): Promise<void> {
  const reported = new Map(reports.flatMap(({ vms }) => vms.map((vm) => [vm.id, vm] as const)))
  const hosts = reports.map(({ name }) => name)
  for (const vm of await listKnownVms(services.database, location, hosts)) {
    const status = reported.get(vm.id)
    if (vm.is_hidden) await unlessAway(services, vm.id, () => removeHidden(services, vm.id))
    else if (looksOff(vm.state, status)) await reconcileVm(services, vm.id)
    else if (vm.state === 'STATE_SHUTOFF' && (status?.power ?? 'off') !== 'off')
      await unlessAway(services, vm.id, () => turnOff(services, vm.id))
    else if (status && status.firewallGeneration < vm.firewall_applied)
      await markFirewallLost(services.database, vm.id)
  }
}

/** VMs of hosts that stopped reporting. Those under way in an operation wait for its end. */
export async function reconcileLostVms(services: Services): Promise<void> {
  for (const { id } of await listVmsOnLostHosts(services.database, livingStates))
    await reconcileVm(services, id)
}

/** A first, cheap look: whether the VM deserves a closer one. */
function looksOff(state: VmState, status: VmStatus | undefined): boolean {
  if (state === 'STATE_UNREACHABLE') return true
  if (state === 'STATE_RUNNING') return status?.power !== 'running'
  return false
}

/**
 * Brings one VM's state to what inspection shows. The engine is asked between two looks at the row: if any operation
 * touched the VM meanwhile, nothing is changed.
 */
async function reconcileVm(services: Services, id: string): Promise<void> {
  const { database } = services
  const vm = await findAnyVm(database, id)
  if (!vm || vm.deleted_at) return
  const to = await stateByInspection(services, vm)
  if (!to || to.state === vm.state) return
  await database.transaction(async (tx) => {
    if (!(await lockUnchangedVm(tx, id, vm.generation))) return
    const current = (await findAnyVm(tx, id))!
    const cause = { ...system, ...(to.detail && { detail: to.detail }) }
    if (!(await changeVmState(tx, current, to.state, { cause }))) return
    if (to.state === 'STATE_SHUTOFF') {
      await markVmStopped(tx, id)
      await releaseGpus(tx, current)
    }
  })
}

async function stateByInspection(
  services: Services,
  vm: VmRow,
): Promise<{ state: VmState; detail?: string } | null> {
  if (vm.host_state === 'down') return { state: 'STATE_UNREACHABLE', detail: 'its host stopped reporting' }
  const status = await inspect(services, vm)
  if (status === 'away') return null
  if (!status) return { state: 'STATE_CRASHED', detail: 'its host no longer has it' }
  const detail = status.detail ? { detail: status.detail } : {}
  switch (status.power) {
    case 'running':
      return { state: 'STATE_RUNNING' }
    case 'crashed':
      return { state: 'STATE_CRASHED', ...detail }
    case 'off':
      // A guest that powered itself off: its GPUs are still held, so it has not been stopped.
      return vm.state === 'STATE_UNREACHABLE'
        ? { state: 'STATE_SHUTOFF', ...detail }
        : { state: 'STATE_CRASHED', detail: 'the guest powered off by itself' }
    default:
      return null
  }
}

async function inspect(services: Services, vm: VmRow): Promise<VmStatus | null | 'away'> {
  try {
    return await engineAt(services, vm.location).inspectVm(refOf(vm), AbortSignal.timeout(lookMs))
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
async function turnOff(services: Services, id: string): Promise<void> {
  const vm = await findAnyVm(services.database, id)
  if (vm?.state !== 'STATE_SHUTOFF') return
  const call = { generation: vm.generation, signal: AbortSignal.timeout(lookMs) }
  await engineAt(services, vm.location).powerVm(refOf(vm), 'off', call)
}

/** Deleted while its host was away, and the host is back: now it really goes. */
async function removeHidden(services: Services, id: string): Promise<void> {
  const vm = await findAnyVm(services.database, id)
  if (!vm?.deleted_at || vm.host_state === 'down') return
  const engine = engineAt(services, vm.location)
  const signal = AbortSignal.timeout(lookMs)
  await engine.removeVm(refOf(vm), { generation: vm.generation, signal })
  if (await engine.inspectVm(refOf(vm), signal)) return
  await services.database.transaction(async (tx) => {
    if (await lockUnchangedVm(tx, id, vm.generation)) await forgetVm(tx, vm)
  })
}
