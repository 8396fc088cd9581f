import { diskMbps, vmStateTable, vmType } from '@slipway/contract'
import { gatewayOf } from '../../domain/addresses.ts'
import { Failure } from '../../domain/failure.ts'
import { type Engine, EngineError, type VmSpec, type VmStatus } from '../../engines/engine.ts'
import type { Tx } from '../../postgres/database.ts'
import { done, fail, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import { vmRecordAsResult } from '../../store/compute/operation-changes.ts'
import { findVmForEngine, type VmEngineRow } from '../../store/compute/vms.ts'
import { callOf, engineAt, nextInspectionMs } from '../engine-work.ts'
import { compile } from '../firewall/apply.ts'
import { updateGroupHealthOf } from '../group/health.ts'
import { rendezvousOf } from '../group/rendezvous.ts'
import { hostKeyOf } from './host-key.ts'
import { createNewDisks, finishNewDisks } from './new-disks.ts'
import { startVm } from './state.ts'
import { attachedDisks, osDiskLost, refOf, requireOsDisk, vmNotFound, vmOf } from './vm.ts'

/**
 * Creates the VM's new disks. Then defines the VM, applies its firewall and powers it on in one engine call, and waits until the
 * guest responds. The call is repeated if the engine has lost the VM, or if firewall rules have changed since.
 */
export async function bootVm(work: Work): Promise<Outcome> {
  const { database } = work.services
  const prefetched = (await work.prefetched) as VmEngineRow | undefined
  const vm = prefetched ?? (await findVmForEngine(database, work.operation.resource_id))
  if (!vm) throw vmNotFound()
  requireOsDisk(vm)
  const engine = engineAt(work.services, vm.location)
  let firewallGeneration = Number(work.scratch.firewallGeneration ?? 0)
  let status = work.scratch.bootingSinceMs ? await engine.inspectVm(refOf(vm), work.signal) : null
  if (!status || status.power === 'off' || firewallGeneration < vm.firewall_wanted) {
    firewallGeneration = vm.firewall_wanted
    status = await defineAndStart(work, engine, vm)
  }
  if (status?.power === 'running') return next({ sshDestination: status.sshDestination, firewallGeneration })
  if (status?.power === 'crashed')
    return fail('boot_failed', `The guest did not boot. ${status.detail ?? ''}`.trim())
  const bootingSinceMs = Number(work.scratch.bootingSinceMs ?? work.nowMs)
  return wait(status?.etaMs ?? nextInspectionMs(bootingSinceMs, work.nowMs), {
    bootingSinceMs,
    firewallGeneration,
    ...(status?.detail && { detail: status.detail }),
  })
}

async function defineAndStart(work: Work, engine: Engine, vm: VmEngineRow): Promise<VmStatus | null> {
  await createNewDisks(work, vm)
  const rules = compile(vm.firewall, vm)
  const group = await rendezvousOf(work, vm)
  const sshHostKey = await hostKeyOf(work, vm)
  const spec = vmSpec(vm, work.operation.name === 'CREATE', { sshHostKey, group })
  const wanted = { firewall: { rules, generation: vm.firewall_wanted }, power: 'on' } as const
  return engine.ensureVm(spec, wanted, callOf(work)).catch((error) => {
    throw error instanceof EngineError && error.kind === 'lost' ? osDiskLost(error) : error
  })
}

function vmSpec(
  vm: VmEngineRow,
  isNew: boolean,
  { sshHostKey, group }: Pick<VmSpec, 'sshHostKey' | 'group'>,
): VmSpec {
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
    image: {
      name: vm.image,
      source: vm.image_source,
      ...(vm.custom_image_id !== null && { isCustom: true as const }),
    },
    osDiskGib: vm.os_disk_gib,
    osDiskMbps: diskMbps['persistent-ssd']!,
    scratchGb: type.nvmeGb,
    sshPublicKeys: vm.ssh_public_keys,
    sshHostKey,
    startupScript: vm.startup_script,
    shutdownScript: vm.shutdown_script,
    group,
    network: {
      networkId: vm.network_id,
      macAddress: vm.mac_address,
      privateAddress: vm.private_address,
      subnetCidr: vm.subnet_cidr,
      gateway: gatewayOf(vm.subnet_cidr),
      publicAddress: vm.public_address ?? '',
      gbps: type.networkGbps,
    },
    disks: attachedDisks(vm),
  }
}

export const bootDeadline = {
  code: 'boot_failed',
  message: 'The guest did not respond in time. The serial log may show why.',
} as const

/** The last step of a creation, start or reset: the VM is running and billed. */
export async function finishBoot(work: Work, tx: Tx): Promise<Outcome> {
  const { operation, scratch } = work
  if (scratch.hasNewDisks === true) await finishNewDisks(tx, await vmOf(work, tx), operation)
  await startVm(tx, {
    id: operation.resource_id,
    isNew: operation.name === 'CREATE',
    sshDestination: String(scratch.sshDestination ?? ''),
    firewallGeneration: Number(scratch.firewallGeneration ?? 0),
    actor: operation.actor,
    requestId: operation.request_id,
    operationId: operation.id,
  })
  // This is a member that was started or reset. The creation of a member ends in `group/arrival.ts`.
  if (typeof scratch.memberOf === 'string')
    await updateGroupHealthOf(tx, {
      id: operation.resource_id,
      group_id: scratch.memberOf,
      project_id: operation.project_id,
    })
  return done(vmRecordAsResult)
}

/** Returns why `finishBoot` could not move the VM to running. */
export async function whyNotStarted(work: Work): Promise<Error> {
  const vm = await vmOf(work)
  requireOsDisk(vm)
  return vmStateTable[vm.state].mayGoTo.includes('STATE_RUNNING')
    ? new Error('the VM was briefly in an unexpected state')
    : new Failure('conflict', `The VM changed to ${vm.state} in the meantime.`)
}
