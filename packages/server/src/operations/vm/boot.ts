import { osDiskGib, vmType } from '@slipway/contract'
import { gatewayOf } from '../../domain/addresses.ts'
import { Failure } from '../../domain/failure.ts'
import { EngineError, type VmSpec } from '../../engines/engine.ts'
import { done, fail, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import { vmView } from '../../store/compute/vm-view.ts'
import { findVmForEngine, markVmStarted, type VmEngineRow } from '../../store/compute/vms.ts'
import type { Tx } from '../../store/database.ts'
import { callOf, engineAt, lookAgainMs } from '../engine-work.ts'
import { compileFor } from '../firewall/apply.ts'
import { causeOf, changeVmState } from './state.ts'
import { attachedDisks, osDiskLost, refOf, requireOsDisk, vmGone, vmOf } from './vm.ts'

function vmSpec(vm: VmEngineRow, isNew: boolean): VmSpec {
  const type = vmType(vm.type)!
  return {
    ...refOf(vm),
    name: vm.name,
    projectId: vm.project_id,
    isNew,
    type: vm.type,
    cpuCores: type.cpuCores,
    memoryGb: type.memoryGb,
    gpus: vm.gpus.map(({ pci_address, model }) => ({ pciAddress: pci_address, model })),
    image: { name: vm.image, source: vm.image_source },
    osDiskGib,
    scratchGb: type.nvmeGb,
    sshPublicKey: vm.ssh_public_key,
    startupScript: vm.startup_script,
    shutdownScript: vm.shutdown_script,
    network: {
      networkId: vm.network_id,
      macAddress: vm.mac_address,
      privateAddress: vm.private_address,
      subnetCidr: vm.subnet_cidr,
      gateway: gatewayOf(vm.subnet_cidr),
      publicAddress: vm.public_address ?? '',
    },
    disks: attachedDisks(vm),
  }
}

/** Defines the VM at the engine as its row says. Only its creation may give it an OS disk. */
export async function defineVm(work: Work): Promise<Outcome> {
  const vm = await findVmForEngine(work.services.database, work.operation.resource_id)
  if (!vm) throw vmGone()
  requireOsDisk(vm)
  const isNew = work.operation.name === 'CREATE'
  const engine = engineAt(work.services, vm.location)
  await engine.ensureVm(vmSpec(vm, isNew), callOf(work)).catch((error) => {
    throw error instanceof EngineError && error.kind === 'lost' ? osDiskLost(error) : error
  })
  return next()
}

/** The firewall stands before the guest does: there is no moment without it. */
export async function protectVm(work: Work): Promise<Outcome> {
  const firewallGeneration = await applyRules(work).catch(async (error) => {
    if (!(error instanceof EngineError) || error.kind !== 'missing') throw error
    // It forgot the VM that was just defined. Rules that were changed meanwhile are looked up again: while there was no
    // VM to change, they counted as applied.
    await defineVm(work)
    return applyRules(work).catch(tryAgainIfMissing)
  })
  return next({ firewallGeneration })
}

/** Returns the generation of what was applied. */
async function applyRules(work: Work): Promise<number> {
  const vm = await vmOf(work)
  const rules = await compileFor(work.services.database, vm)
  const call = { generation: vm.firewall_wanted, signal: work.signal }
  await engineAt(work.services, vm.location).applyFirewall(refOf(vm), rules, call)
  return call.generation
}

/** Powers the VM on and waits until its guest answers; an engine that forgot what it was told is told again. */
export async function bootVm(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  requireOsDisk(vm)
  const engine = engineAt(work.services, vm.location)
  const protectedBy = Number(work.scratch.firewallGeneration ?? 0)
  let status = await engine.inspectVm(refOf(vm), work.signal)
  if (!status || status.power === 'off') {
    if (!status || status.generation < work.operation.generation) await defineVm(work)
    if (!status || status.firewallGeneration < protectedBy) await protectVm(work)
    await engine.powerVm(refOf(vm), 'on', callOf(work)).catch(tryAgainIfMissing)
    status = await engine.inspectVm(refOf(vm), work.signal)
  }
  if (status?.power === 'running') return next({ sshDestination: status.sshDestination })
  if (status?.power === 'crashed')
    return fail('boot_failed', `The guest did not boot. ${status.detail ?? ''}`.trim())
  const bootingSinceMs = Number(work.scratch.bootingSinceMs ?? work.nowMs)
  return wait(status?.etaMs ?? lookAgainMs(bootingSinceMs, work.nowMs), {
    bootingSinceMs,
    ...(status?.detail && { detail: status.detail }),
  })
}

/** What was defined a moment ago and is not there was forgotten, and can be defined again. */
function tryAgainIfMissing(error: unknown): never {
  if (error instanceof EngineError && error.kind === 'missing')
    throw new EngineError('unavailable', error.message, { cause: error })
  throw error
}

export const bootDeadline = {
  code: 'boot_failed',
  message: 'The guest did not answer in time; the serial log may say why.',
} as const

/** The end of a creation and of a start: running, metered, reachable. */
export async function finishBoot(work: Work, tx: Tx): Promise<Outcome> {
  const vm = await vmOf(work, tx)
  requireOsDisk(vm)
  if (!(await changeVmState(tx, vm, 'STATE_RUNNING', { cause: causeOf(work) })))
    throw new Failure('conflict', `The VM went to ${vm.state} meanwhile.`)
  const sshDestination = vm.public_address ? String(work.scratch.sshDestination ?? '') : ''
  const firewallGeneration = Number(work.scratch.firewallGeneration ?? 0)
  return done(vmView(await markVmStarted(tx, vm, sshDestination, firewallGeneration)))
}
