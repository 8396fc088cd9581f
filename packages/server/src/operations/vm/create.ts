import { gpuQuota, type VmCreate, vmType } from '@slipway/contract'
import { sshKeyLine } from '@slipway/contract/ssh-key'
import { Failure, invalidField } from '../../domain/failure.ts'
import { isCloudConfig } from '../../domain/guest/scripts.ts'
import { uuid } from '../../domain/ids.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import type { OperationRow } from '../../store/compute/operations.ts'
import { findAnyVm, insertVm, isVmNameTaken } from '../../store/compute/vms.ts'
import { type Tx, violatedConstraint } from '../../store/database.ts'
import type { Requester } from '../../store/events/events.ts'
import { findSubnetFor } from '../../store/network/networks.ts'
import { beginOperation, type ProjectRequester, requireIdle, requireQuota } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { requireImage, requireLocation } from '../catalogue.ts'
import { admitAttachments, hostsOfLocalDisks, lockDisksFor, requireDistinct } from '../disk/attachments.ts'
import { bootDeadline, bootVm, finishBoot } from './boot.ts'
import { admitVmDelete } from './delete.ts'
import { newMacAddress, onVmCollision, pickAddresses, placeVm, vmNameTaken } from './place.ts'
import { forgetVm } from './state.ts'
import { removeVm, vmOf } from './vm.ts'

/** GPUs, addresses, name, disks and quota are held when this commits: a 200 is a promise. */
export async function admitVmCreate(tx: Tx, by: ProjectRequester, body: VmCreate): Promise<OperationRow> {
  try {
    return await claimAll(tx, by, body)
  } catch (error) {
    // The schema tells that a name is taken at the very end: who was refused for less hears of the name first.
    const comesAfterName = error instanceof Failure && ['conflict', 'out_of_stock'].includes(error.code)
    if (comesAfterName && (await isVmNameTaken(tx, by.projectId, body.name))) throw vmNameTaken(body.name)
    throw error
  }
}

async function claimAll(tx: Tx, by: ProjectRequester, body: VmCreate): Promise<OperationRow> {
  const { type, location, image, subnet } = await checkRequest(tx, by.projectId, body)
  const refusal = await budgetRefusal(tx, by.projectId)
  const id = uuid()
  const disks = await lockDisksFor(tx, by.projectId, 'disks', body.disks ?? [], {
    location: location.name,
    type,
  })
  for (const { disk } of disks) await requireIdle(tx, disk.id, `The disk ${disk.name}`)
  const hasPublicAddress = body.public_ip !== 'none'
  const addresses = await pickAddresses(tx, subnet, location, hasPublicAddress)
  const operation = await beginOperation(tx, by, vmCreate, {
    resourceId: id,
    location: location.name,
    generation: 1,
    request: body,
    eventType: 'vm.creating',
    eventData: { name: body.name, type: type.name, location: location.name },
  })
  // From here on a host is locked, and others may want it: little is left to do.
  const allowedHosts = location.storage === 'local' ? hostsOfLocalDisks(disks) : null
  const { hostId } = await placeVm(tx, id, type, location.name, allowedHosts)
  try {
    await insertVm(tx, {
      id,
      projectId: by.projectId,
      name: body.name,
      type: type.name,
      family: type.family,
      gpuCount: type.gpuCount,
      location: location.name,
      hostId,
      image: body.image,
      imageSource: image.source,
      sshPublicKey: sshKeyLine(body.ssh_public_key),
      startupScript: body.startup_script ?? '',
      shutdownScript: body.shutdown_script ?? '',
      osDiskId: uuid(),
      interfaceId: uuid(),
      networkId: subnet.network_id,
      subnetId: subnet.id,
      macAddress: newMacAddress(),
      ...addresses,
      publicAddressId: hasPublicAddress ? uuid() : null,
      ttlSeconds: body.ttl_seconds ?? null,
      onExpiry: body.on_expiry ?? 'stop',
    })
  } catch (error) {
    throw onVmCollision(violatedConstraint(error), body.name) ?? error
  }
  await admitAttachments(tx, id, disks, location.storage === 'local' ? hostId : null)
  if (refusal) throw refusal
  await requireQuota(tx, by.projectId, { vms: 1, [gpuQuota(type.family)]: type.gpuCount })
  return operation
}

async function checkRequest(tx: Tx, projectId: string, body: VmCreate) {
  const type = vmType(body.type)!
  requireDistinct('disks', body.disks ?? [])
  if (body.on_expiry !== undefined && body.ttl_seconds === undefined)
    throw invalidField('on_expiry', 'needs ttl_seconds')
  const location = await requireLocation(tx, body.location)
  const image = await requireImage(tx, body.image, location.name)
  if (isCloudConfig(body.startup_script ?? '') && !image.tags.includes('cloud-init'))
    throw invalidField(
      'startup_script',
      `must be a script: ${image.name} has no cloud-init for #cloud-config`,
    )
  const subnet = await findSubnetFor(tx, projectId, location.name, body.subnet_id ?? null)
  if (!subnet)
    throw body.subnet_id === undefined
      ? new Failure('conflict', `The project has no subnet in ${location.name}: create one first.`)
      : invalidField('subnet_id', 'must be a subnet of this project')
  if (subnet.location !== location.name)
    throw invalidField('subnet_id', `is in ${subnet.location}, not in ${location.name}`)
  return { type, location, image, subnet }
}

export const vmCreate: Definition = {
  kind: 'vm-create',
  name: 'CREATE',
  resourceType: 'vm',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: forget },
    { name: 'boot', call: bootVm, undoCall: remove, onDeadline: bootDeadline },
    { name: 'finish', tx: finishBoot },
  ],
  onAbandon: tearDown,
}

/** Nothing of a failed creation is left behind: its deletion is tried until it holds. */
async function tearDown(tx: Tx, by: Requester, operation: OperationRow): Promise<void> {
  const vm = await findAnyVm(tx, operation.resource_id)
  if (vm) await admitVmDelete(tx, { ...by, projectId: operation.project_id }, vm)
}

async function forget(work: Work, tx: Tx): Promise<void> {
  const vm = await vmOf(work, tx)
  await forgetVm(tx, vm)
}

async function remove(work: Work): Promise<void> {
  await removeVm(work, await vmOf(work))
}
