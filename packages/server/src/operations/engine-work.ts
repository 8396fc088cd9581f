import { osDiskGib, vmType } from '@slipway/contract'
import { gatewayOf } from '../domain/addresses.ts'
import { Failure } from '../domain/failure.ts'
import type { Queryable } from '../store/database.ts'
import { findSubnet } from '../store/networks.ts'
import { findAnyVm, findVmGpus, type VmRow } from '../store/vms.ts'
import type { AttachedDisk, Call, Engine, VmRef, VmSpec } from './engine.ts'
import { fail, next, type Outcome, type Work, type Workshop, wait } from './operation.ts'

/** How soon to look again when the engine does not say. */
const lookAgainMs = 250

export function engineAt(workshop: Pick<Workshop, 'engines'>, location: string): Engine {
  const engine = workshop.engines.get(location)
  if (!engine) throw new Failure('unavailable', `The location ${location} has no engine here.`)
  return engine
}

export const callOf = (work: Work): Call => ({ generation: work.operation.generation, signal: work.signal })
export const refOf = (vm: VmRow): VmRef => ({ id: vm.id, host: vm.host ?? '' })

/** The VM of a VM operation. It is there as long as the operation is: only deletion removes it. */
export async function vmOf(work: Work, db: Queryable = work.workshop.database): Promise<VmRow> {
  const vm = await findAnyVm(db, work.operation.resource_id)
  if (!vm) throw new Failure('not_found', 'The VM is gone.')
  return vm
}

export const attachedDisks = (vm: VmRow): AttachedDisk[] =>
  vm.disks.map((disk) => ({
    id: disk.id,
    host: vm.host ?? '',
    type: disk.type,
    sizeGib: disk.size_gib,
    blockSize: disk.block_size,
    serialNumber: disk.serial_number,
    mode: disk.mode,
  }))

export async function vmSpec(db: Queryable, vm: VmRow): Promise<VmSpec> {
  const type = vmType(vm.type)!
  const [gpus, subnet] = [await findVmGpus(db, vm.id), await findSubnet(db, vm.project_id, vm.subnet_id)]
  return {
    ...refOf(vm),
    name: vm.name,
    projectId: vm.project_id,
    type: vm.type,
    cpuCores: type.cpuCores,
    memoryGb: type.memoryGb,
    gpus: gpus.map(({ pci_address, model }) => ({ pciAddress: pci_address, model })),
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
      subnetCidr: subnet!.cidr,
      gateway: gatewayOf(subnet!.cidr),
      publicAddress: vm.public_address ?? '',
    },
    disks: attachedDisks(vm),
  }
}

/** Defines the VM at the engine as its row says. */
export async function defineVm(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  const engine = engineAt(work.workshop, vm.location)
  await engine.ensureVm(await vmSpec(work.workshop.database, vm), callOf(work))
  return next()
}

/** Powers the VM on and waits until its guest answers; an engine that forgot what it was told is told again. */
export async function bootVm(work: Work): Promise<Outcome> {
  const vm = await vmOf(work)
  const engine = engineAt(work.workshop, vm.location)
  let status = await engine.inspectVm(refOf(vm), work.signal)
  if (!status) await defineVm(work)
  if (!status || status.power === 'off') {
    await engine.powerVm(refOf(vm), 'on', callOf(work))
    status = await engine.inspectVm(refOf(vm), work.signal)
  }
  if (status?.power === 'running') return next({ sshDestination: status.sshDestination })
  if (status?.power === 'crashed')
    return fail('boot_failed', `The guest did not boot. ${status.detail ?? ''}`.trim())
  return wait(status?.etaMs ?? lookAgainMs, status?.detail ? { detail: status.detail } : undefined)
}

export const bootDeadline = {
  code: 'boot_failed',
  message: 'The guest did not answer in time; the serial log may say why.',
} as const
