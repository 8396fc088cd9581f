import type { VmCreate } from '@slipway/contract'
import { nameTaken, outOfStock } from '../../domain/failure.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import type { Definition, Outcome, Work } from '../../runner/operation.ts'
import { type Hold, placeOnHold } from '../../store/capacity/holds.ts'
import { setReservationOfVm } from '../../store/capacity/reservations.ts'
import type { PlacementRequest } from '../../store/compute/host-locks.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { claimGpus } from '../../store/compute/placement.ts'
import { readQuotas, takeQuota } from '../../store/compute/quotas.ts'
import { insertVm } from '../../store/compute/vm-changes.ts'
import { findVmForEngine, findVmName, lockAnyVm } from '../../store/compute/vms.ts'
import type { Requester } from '../../store/events/events.ts'
import { emitAddress, emitUnassigned } from '../address/events.ts'
import { lockRequestedAddress } from '../address/requested.ts'
import { beginOperation, type ProjectRequester, quotaExceeded } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { requeueAfterFailedBoot } from '../capacity/boot-failures.ts'
import { placeInReservations, reservationChoice } from '../capacity/reserved-placement.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { admitAttachments, type LockedDisk, lockDisksFor, requireFree } from '../disk/attachments.ts'
import { barrierGraceS, finishMember, reportBootFailure } from '../group/arrival.ts'
import { type Addresses, pickAddresses } from './addresses.ts'
import { bootDeadline, bootVm, finishBoot, whyNotStarted } from './boot.ts'
import { admitVmDelete } from './delete.ts'
import { reserveRange } from './location.ts'
import { admitNewDisks, announceNewDisks, leaveBatchForNewDisks } from './new-disks.ts'
import { type Placement, placeVm } from './place.ts'
import { hostsFor, notOnOneHost, planVm, quotaOf, rowOf, type VmPlan } from './plan.ts'
import { noHost, noRange } from './refusals.ts'
import { causeOf, forgetVm } from './state.ts'
import { completeVmBody, type VmBody } from './template.ts'
import { removeVm, vmOf } from './vm.ts'

/**
 * Admits one VM in the transaction of its request: when this commits, the VM's name, addresses, GPUs, disks
 * and quota are claimed. It reads what is free, refuses the request if something is missing, and sends its
 * writes together with the commit. If another transaction took something in between, a write fails and the
 * admission runs again. With a `hold`, the VM gets the GPUs that are held for it.
 */
export async function admitVmCreate(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  request: VmCreate,
  hold?: Hold,
): Promise<BegunOperation> {
  // Check the request. The body of a capacity request was completed when it was sent.
  const body = hold ? (request as VmBody) : await completeVmBody(tx, by.projectId, request)
  const planned = await planVm(tx, catalogue, by, body)
  const { type, location, subnet } = planned
  const plan = { ...planned, address: await lockRequestedAddress(tx, by.projectId, body, location.name) }
  const quota = quotaOf(plan)

  // Lock the disks, which may determine the host, and reserve the range of the subnet.
  leaveBatchForNewDisks(tx, plan.newDisks)
  const disks = await lockDisksFor(tx, by.projectId, 'disks', body.disks, {
    location: location.name,
    type,
    disks: plan.newDisks,
  })
  const requiredHosts = hostsFor(plan, disks)
  const wanted = {
    location: location.name,
    family: type.family,
    gpuCount: type.gpuCount,
    allowedHosts: requiredHosts.length > 0 ? requiredHosts : null,
  }
  const isRangeFree = !subnet.is_bridged || (await reserveRange(tx, subnet.id))

  // Read what is free, and lock a host that has room, in one round trip.
  const readName = findVmName(tx, { projectId: by.projectId, name: body.name })
  const readBudget = budgetRefusal(tx, by.projectId)
  const readQuota = readQuotas(tx, quota)
  const hasPublicAddress = body.public_ip !== 'none' && !plan.address
  const readAddresses = pickAddresses(tx, { subnet, location, hasPublicAddress })
  const lockHost = hold ? placeOnHold(tx, { ...hold, gpuCount: type.gpuCount }) : placeVm(tx, wanted)
  // Wait for all of them, so that the refusal does not depend on which read fails first.
  await Promise.allSettled([readName, readBudget, readQuota, readAddresses, lockHost])

  // Refuse the request based on what was read: name, disks, addresses, range, hosts and GPUs, budget, quota.
  const { isTaken, hasReservations, now } = await readName
  if (isTaken) throw nameTaken('VM', body.name)
  await requireFree(tx, disks)
  const addresses = await readAddresses
  if (!isRangeFree) throw await noRange(tx, catalogue, plan)
  if (requiredHosts.length > 1) throw notOnOneHost()
  const reserved = hasReservations && !hold ? await placeReserved(tx, plan, wanted) : undefined
  const placement = reserved ?? (await lockHost)
  if (!placement) throw hold ? new TryAgain('the hold was lost') : await noHost(tx, catalogue, plan)
  const overBudget = await readBudget
  if (overBudget) throw overBudget
  // From here on, other requests in the batch see less quota; `writeVm` writes the change.
  const shortage = (await readQuota).take(quota)
  if (shortage) throw quotaExceeded(shortage)

  return writeVm(tx, catalogue, plan, { placement, addresses, disks, now, request })
}

export const vmCreate: Definition = {
  kind: 'vm-create',
  name: 'CREATE',
  resourceType: 'vm',
  deadlineS: 'configured',
  steps: [
    // The admission is the function above.
    { name: 'admit', undoTx: forgetNewVm },
    {
      name: 'boot',
      call: bootVm,
      undoCall: async (work) => removeVm(work, await vmOf(work)),
      onDeadline: bootDeadline,
    },
    // A member of a group waits for the others within the deadline of the group.
    {
      name: 'finish',
      tx: finishCreation,
      isShared: true,
      onUnexpectedState: whyNotStarted,
      graceS: barrierGraceS,
    },
  ],
  onAbandon: deleteAbandoned,
}

/** What an admission has found for a planned VM. */
interface VmClaims {
  placement: Placement
  addresses: Addresses
  disks: LockedDisk[]
  /** The service's time. */
  now: Date
  request: unknown
}

/** Queues the VM and its claims, which are sent together with the commit, and begins its operation. */
export async function writeVm(
  tx: Tx,
  catalogue: CatalogueCache,
  plan: VmPlan,
  { placement, addresses, disks, now, request }: VmClaims,
): Promise<BegunOperation> {
  const { id, by, body, type, location, newDisks, member } = plan
  await insertVm(tx, rowOf(plan, placement, addresses))
  // An outdated cache may be the reason for a rollback, so it is cleared.
  tx.onEnd((isCommitted) => {
    if (!isCommitted) catalogue.forget()
  })
  await claimGpus(tx, { vmId: id, ...placement })
  if (placement.reservationId) await setReservationOfVm(tx, id, placement.reservationId)
  const pinnedToHost = location.storage === 'local' ? placement.hostId : null
  await admitAttachments(tx, id, disks, pinnedToHost)
  await admitNewDisks(tx, id, newDisks, pinnedToHost)
  await takeQuota(tx, quotaOf(plan))
  // The start time is known, so the operation is also sent with the commit.
  const operation = await beginOperation(tx, by, vmCreate, {
    resource: { id, name: body.name, location: location.name, labels: body.labels ?? {} },
    generation: 1,
    request,
    scratch: {
      ...(newDisks.length > 0 && { hasNewDisks: true }),
      ...(member && { memberOf: member.groupId }),
    },
    eventType: 'vm.creating',
    eventData: { type: type.name, location: location.name },
    prefetch: (db) => findVmForEngine(db, id),
    startedAt: now,
  })
  await announceNewDisks(tx, by, newDisks, operation)
  if (plan.address) await emitAddress(tx, by, 'address.assigned', plan.address, { vm_id: id })
  return operation
}

/** Finds GPUs in a reservation if the request allows it; undefined if the VM gets GPUs from stock. */
async function placeReserved(tx: Tx, { by, body, type, location }: VmPlan, wanted: PlacementRequest) {
  const choice = reservationChoice(by.projectId, body)
  if (!choice) return undefined
  // In a batch, the other requests could not use the GPUs that were already found in stock for this VM.
  if (!tx.mayWait) throw retryAlone('a reservation may have GPUs for the VM')
  const [found] = await placeInReservations(tx, choice, wanted)
  if (!found && choice.id)
    throw outOfStock(`The reservation has no room for ${type.name} in ${location.name}.`)
  return found
}

async function forgetNewVm(work: Work, tx: Tx): Promise<void> {
  const vm = await vmOf(work, tx)
  await reportBootFailure(work, tx, vm)
  await forgetVm(tx, vm)
  await emitUnassigned(tx, vm, causeOf(work))
  await requeueAfterFailedBoot(tx, work.operation.id)
}

/** A member of a group waits until all members respond; any other VM is running immediately. */
function finishCreation(work: Work, tx: Tx): Promise<Outcome> {
  return work.scratch.memberOf === undefined ? finishBoot(work, tx) : finishMember(work, tx)
}

/** Deletes the VM of an abandoned creation. A deletion is retried until it succeeds, so that nothing remains. */
async function deleteAbandoned(tx: Tx, by: Requester, operation: OperationRow): Promise<void> {
  const vm = await lockAnyVm(tx, operation.resource_id)
  if (vm) await admitVmDelete(tx, { ...by, projectId: operation.project_id }, vm)
}
