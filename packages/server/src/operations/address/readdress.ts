import { Failure, invalidField, requireFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { EngineError, type VmStatus } from '../../engines/engine.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { type Definition, done, fail, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { findChildOperations } from '../../store/compute/operations.ts'
import { raiseVmGeneration } from '../../store/compute/vm-changes.ts'
import { vmViewOf } from '../../store/compute/vm-view.ts'
import { lockVm, type VmRow } from '../../store/compute/vms.ts'
import { holdAddresses } from '../../store/network/addresses.ts'
import { markFirewallLost, markReferringFirewallsOutdated } from '../../store/network/firewalls.ts'
import {
  type AddressRow,
  findAddress,
  findPromisedAddress,
  giveAddress,
  lockAddress,
  promiseAddress,
  promiseNewAddress,
  withdrawPromise,
} from '../../store/network/public-addresses.ts'
import { beginOperation, type ProjectRequester, requireNoOperation } from '../admission.ts'
import { requireLocation } from '../catalogue.ts'
import { callOf, engineAt } from '../engine-work.ts'
import { pickPublicAddress } from '../vm/addresses.ts'
import { causeOf } from '../vm/state.ts'
import { lockVmOf, refOf, vmOf } from '../vm/vm.ts'
import { emitAddress, emitUnassigned } from './events.ts'
import { requireNotPromised } from './in-use.ts'

const releasePauseMs = 100

/**
 * Promises a reserved address to a VM. If another VM has the address, an operation of that VM first replaces
 * it with a dynamic address. The operation of the receiving VM waits until inspection shows the replacement, so
 * that two VMs never have the same address.
 */
export async function admitAddressAssign(
  tx: Tx,
  by: ProjectRequester,
  addressId: string,
  vmId: string,
): Promise<BegunOperation> {
  const { address, vm, holder } = await lockAll(tx, by, addressId, vmId)
  if (!vm) throw invalidField('vm_id', 'must be a VM of this project')
  if (address.vm_id === vm.id)
    throw new Failure('conflict', `The VM ${vm.name} already has the address ${address.name}.`)
  if (vm.location !== address.location)
    throw invalidField('vm_id', `must be in ${address.location}, the location of the address`)
  await requireChangeable(tx, vm)
  const promised = await findPromisedAddress(tx, vm.id)
  if (promised && promised.id !== address.id)
    throw new Failure(
      'conflict',
      `Another address is being assigned to the VM ${vm.name}. Unassign that address first.`,
    )
  const release = address.vm_id === null ? null : await admitRelease(tx, by, address, holder)
  await promiseAddress(tx, address.id, vm.id)
  return begin(tx, by, vm, { address_id: address.id, request: { vm_id: vm.id }, releasedBy: release?.id })
}

/**
 * Promises a dynamic address to the VM that has the reserved one. If the caller names a VM, the reserved
 * address must belong to this VM.
 */
export async function admitAddressUnassign(
  tx: Tx,
  by: ProjectRequester,
  addressId: string,
  vmId?: string,
): Promise<BegunOperation> {
  const { address, holder } = await lockAll(tx, by, addressId)
  if (address.vm_id === null) throw new Failure('conflict', `No VM has the address ${address.name}.`)
  if (vmId !== undefined && vmId.toLowerCase() !== address.vm_id)
    throw new Failure('conflict', `The VM ${vmId} does not have the address ${address.name}.`)
  return admitRelease(tx, by, address, holder)
}

/** Locks the VMs first, as every operation does, and then the address. */
async function lockAll(tx: Tx, by: ProjectRequester, addressId: string, vmId: string | null = null) {
  const { projectId } = by
  const before = requireFound('address', await findAddress(tx, projectId, addressId))
  const lock = async (id: string | null) => (id === null ? undefined : lockVm(tx, { projectId, id }))
  const isSame = vmId === before.vm_id
  const [vm, other] = await Promise.all([lock(vmId), isSame ? undefined : lock(before.vm_id)])
  const address = requireFound('address', await lockAddress(tx, projectId, addressId))
  if (address.vm_id !== before.vm_id) throw new TryAgain('the address was moved to another VM')
  await requireNotPromised(tx, address, vmId)
  return { address, vm, holder: isSame ? vm : other }
}

async function admitRelease(
  tx: Tx,
  by: ProjectRequester,
  { id, name }: AddressRow,
  holder: VmRow | undefined,
): Promise<BegunOperation> {
  if (!holder)
    throw new Failure(
      'conflict',
      `A deleted VM may still have the address ${name}, because its host does not respond. Try again when the host is back.`,
    )
  await requireChangeable(tx, holder)
  await promiseDynamic(tx, holder)
  return begin(tx, by, holder, { address_id: id, request: {} })
}

/**
 * Promises a dynamic address to the VM, unless one is already promised: an abandoned operation does not
 * withdraw its promise, because the engine may already have set the address.
 */
async function promiseDynamic(tx: Tx, vm: VmRow): Promise<void> {
  const promised = await findPromisedAddress(tx, vm.id)
  if (promised && !promised.is_reserved) return
  if (promised)
    throw new Failure(
      'conflict',
      `Another address is being assigned to the VM ${vm.name}. Wait until the assignment has finished.`,
    )
  const location = await requireLocation(tx, vm.location)
  const isPromised = await promiseNewAddress(tx, {
    ...{ id: uuid(), projectId: vm.project_id, location: vm.location, vmId: vm.id },
    address: await pickPublicAddress(tx, location),
  })
  if (!isPromised) throw new TryAgain('another transaction took the address')
}

/**
 * Throws a 409 while an operation on the VM is in progress, or while its host does not respond, because the VM may
 * still have its old address on that host.
 */
async function requireChangeable(tx: Tx, vm: VmRow): Promise<void> {
  await requireNoOperation(tx, vm.id, `The VM ${vm.name}`)
  if (vm.host_state === 'down' || vm.state === 'STATE_UNREACHABLE')
    throw new Failure(
      'conflict',
      `The host of the VM ${vm.name} does not respond. Try again when the host is back.`,
    )
}

const begin = async (
  tx: Tx,
  by: ProjectRequester,
  vm: VmRow,
  {
    address_id,
    request,
    releasedBy,
  }: { address_id: string; request: object; releasedBy?: string | undefined },
) =>
  beginOperation(tx, by, vmReaddress, {
    resource: vm,
    generation: await raiseVmGeneration(tx, vm.id),
    request,
    scratch: { ...(releasedBy && { releasedBy }) },
    eventType: 'vm.updating',
    eventData: { address_id },
  })

export const vmReaddress: Definition = {
  kind: 'vm-readdress',
  name: 'UPDATE',
  resourceType: 'vm',
  deadlineS: 300,
  steps: [
    { name: 'admit', undoTx: (work, tx) => withdrawPromise(tx, work.operation.resource_id) },
    { name: 'wait_for_release', call: waitForRelease },
    { name: 'set_address', call: setPromised, undoCall: restoreAddress },
    { name: 'finish', tx: finish },
  ],
}

/** The VM that had the address releases it in a separate operation. */
async function waitForRelease({ operation, scratch, services: { database } }: Work): Promise<Outcome> {
  const promised = await findPromisedAddress(database, operation.resource_id)
  if (!promised?.vm_id) return next()
  const [release] = await findChildOperations(database, [String(scratch.releasedBy)])
  // Deleting the other VM cancels its release operation first, and removes the VM and its address later.
  const { code } = { ...(release?.result as { code?: string } | undefined) }
  return release?.state === 'FAILED' && code !== 'cancelled'
    ? fail('conflict', 'The VM that has the address could not release it.')
    : wait(releasePauseMs)
}

async function setPromised(work: Work): Promise<Outcome> {
  const promised = await findPromisedAddress(work.services.database, work.operation.resource_id)
  // The promise was withdrawn before this step was repeated.
  if (!promised) return fail('conflict', 'The address is no longer promised to the VM.')
  const { id, address, is_reserved } = promised
  const status = await setAddress(work, address)
  return next({ id, address, isReserved: is_reserved, sshDestination: status?.sshDestination ?? '' })
}

async function restoreAddress(work: Work): Promise<void> {
  await setAddress(work, (await vmOf(work)).public_address ?? '')
}

/**
 * Sets the address at the engine and verifies it by inspection. If the engine does not have the VM, there is
 * nothing to set.
 */
async function setAddress(work: Work, address: string): Promise<VmStatus | null> {
  const vm = await vmOf(work)
  if (vm.host_id === null) return null
  const engine = engineAt(work.services, vm.location)
  if (!(await engine.inspectVm(refOf(vm), work.signal))) return null
  await engine.setPublicAddress(refOf(vm), address, callOf(work))
  const status = await engine.inspectVm(refOf(vm), work.signal)
  if (status && status.publicAddress !== address)
    throw new EngineError('unavailable', 'the engine does not show the new address of the VM')
  return status
}

/**
 * Records that the VM has the new address. Firewalls that depend on the VM's address are recompiled. The
 * previous address becomes free when no firewall allows it.
 */
async function finish(work: Work, tx: Tx): Promise<Outcome> {
  const { id, address, isReserved, sshDestination } = work.scratch
  const vm = await lockVmOf(work, tx)
  await giveAddress(tx, {
    vmId: vm.id,
    address: String(address),
    addressId: String(id),
    isStatic: isReserved === true,
    sshDestination: vm.state === 'STATE_RUNNING' ? String(sshDestination) : '',
  })
  await markFirewallLost(tx, vm.id)
  await markReferringFirewallsOutdated(tx, [vm])
  await holdAddresses(tx, [vm])
  await emitUnassigned(tx, vm, causeOf(work))
  const reserved = isReserved === true ? await findAddress(tx, vm.project_id, String(id)) : undefined
  const { actor, request_id: requestId, project_id: projectId } = work.operation
  if (reserved)
    await emitAddress(tx, { actor, requestId, projectId }, 'address.assigned', reserved, { vm_id: vm.id })
  return done(await vmViewOf(tx, vm.id))
}
