import { anyLocation, type VmCreate } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { allSettledThenThrow } from '../../postgres/all-settled.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import { claimGpus } from '../../store/compute/placement.ts'
import { readQuotas, takeQuota } from '../../store/compute/quotas.ts'
import { insertVm } from '../../store/compute/vm-changes.ts'
import { findAnyVm, findVmForEngine, findVmName } from '../../store/compute/vms.ts'
import type { Requester } from '../../store/events/events.ts'
import { carryRange, holdCarriedRange } from '../../store/network/carried-ranges.ts'
import {
  type Beginning,
  beginOperation,
  type ProjectRequester,
  quotaExceeded,
  requireIdle,
} from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import type { CatalogueMemory } from '../catalogue.ts'
import { admitAttachments, hostsOfLocalDisks, type LockedDisk, lockDisksFor } from '../disk/attachments.ts'
import { bootDeadline, bootVm, finishBoot, whyNotStarted } from './boot.ts'
import { admitVmDelete } from './delete.ts'
import { chooseLocation } from './location.ts'
import {
  outOfStock,
  outOfStockEverywhere,
  type Placement,
  pickAddresses,
  placeVm,
  rangeTaken,
  vmNameTaken,
} from './place.ts'
import { planVm, quotaOf, rowOf, type VmPlan } from './plan.ts'
import { forgetVm } from './state.ts'
import { removeVm, vmOf } from './vm.ts'

/**
 * Name, addresses, GPUs, disks and quota are claimed when this commits: a 200 is a promise. First it reads what is free, in one
 * round trip, and refuses by that; then it writes, together with the commit. If another transaction took something in
 * between, a write fails and all of this is tried again.
 */
export async function admitVmCreate(
  tx: Tx,
  catalogue: CatalogueMemory,
  by: ProjectRequester,
  body: VmCreate,
): Promise<BegunOperation> {
  const plan = await planVm(tx, catalogue, by, body)
  const { id, type, location, subnet } = plan
  const quota = quotaOf(plan)
  // Disks and bridges have a say in the choice of a host. Disks of several requests would be locked in no order.
  const hasDisks = (body.disks ?? []).length > 0
  if (hasDisks && !tx.mayWait) throw retryAlone('disks are locked by one request at a time')
  const locked = await settled(hasDisks ? lockDisks(tx, plan) : Promise.resolve([]), isConflict)
  const [{ now, isTaken }, budget, quotas, addresses, early] = await allSettledThenThrow([
    findVmName(tx, { projectId: by.projectId, name: body.name }),
    budgetRefusal(tx, by.projectId),
    readQuotas(tx, quota),
    settled(pickAddresses(tx, { subnet, location, hasPublicAddress: body.public_ip !== 'none' })),
    hasDisks || subnet.is_bridged ? undefined : findPlace(tx, plan, null),
  ])
  if (isTaken) throw vmNameTaken(body.name)
  const disks = locked()
  const { privateAddress, publicAddress } = addresses()
  if (subnet.is_bridged) await requireRange(tx, catalogue, plan)
  const isStorageLocal = location.storage === 'local'
  const placement = early ?? (await findPlace(tx, plan, isStorageLocal ? hostsOfLocalDisks(disks) : null))
  if (!placement) throw await withoutPlace(tx, catalogue, plan, () => outOfStock(tx, type, location.name))
  if (budget) throw budget
  const shortage = quotas.take(quota)
  if (shortage) throw quotaExceeded(shortage)

  await insertVm(tx, rowOf(plan, placement, { privateAddress, publicAddress }))
  // What was remembered of the catalogue may be why the VM could not be written.
  tx.onEnd((isCommitted) => isCommitted || catalogue.forget())
  await claimGpus(tx, { vmId: id, gpuIds: placement.gpuIds })
  if (hasDisks) await admitAttachments(tx, id, disks, isStorageLocal ? placement.hostId : null)
  await takeQuota(tx, quota)
  return beginOperation(tx, by, vmCreate, { ...beginningOf(plan), startedAt: now })
}

/** For work whose refusal, or some refusals of it, come after others that are found out at the same time. */
const settled = <T>(work: Promise<T>, isLater = (_: unknown) => true): Promise<() => T> =>
  work.then(
    (value) => () => value,
    (error) => {
      if (!isLater(error)) throw error
      return () => {
        throw error
      }
    },
  )

/** A missing disk is refused before a taken name, a busy one after it. */
const isConflict = (error: unknown) => error instanceof Failure && error.code === 'conflict'

const findPlace = (
  tx: Tx,
  { type, location }: VmPlan,
  allowedHosts: string[] | null,
): Promise<Placement | undefined> =>
  placeVm(tx, { location: location.name, family: type.family, gpuCount: type.gpuCount, allowedHosts })

async function lockDisks(tx: Tx, { by, body, location, type }: VmPlan): Promise<LockedDisk[]> {
  const disks = await lockDisksFor(tx, by.projectId, 'disks', body.disks ?? [], {
    location: location.name,
    type,
  })
  for (const { disk } of disks) await requireIdle(tx, disk.id, `The disk ${disk.name}`)
  return disks
}

/** The bridges of the location's hosts carry the range of the VM's subnet from now on. */
async function requireRange(tx: Tx, catalogue: CatalogueMemory, plan: VmPlan): Promise<void> {
  const { subnet, body, by } = plan
  if (await holdCarriedRange(tx, subnet.id)) return
  if (!tx.mayWait) throw retryAlone('the range is not carried yet')
  if (await carryRange(tx, subnet.id)) return
  throw await withoutPlace(tx, catalogue, plan, async () => {
    const { subnet_id, ...elsewhere } = body
    const { fitting } = await chooseLocation(tx, catalogue, by.projectId, elsewhere)
    return rangeTaken(subnet, fitting)
  })
}

/** Why it has no place in its location, unless it may go to another location that has one. */
async function withoutPlace(
  tx: Tx,
  catalogue: CatalogueMemory,
  { by, body, type }: VmPlan,
  refusalHere: () => Promise<Failure>,
): Promise<Error> {
  if (body.location !== anyLocation) return refusalHere()
  const { fitting } = await chooseLocation(tx, catalogue, by.projectId, body)
  return fitting.length === 0 ? outOfStockEverywhere(tx, type) : new TryAgain('the VM fits elsewhere')
}

const beginningOf = ({ id, body, type, location }: VmPlan): Beginning => ({
  resourceId: id,
  location: location.name,
  generation: 1,
  request: body,
  eventType: 'vm.creating',
  eventData: { name: body.name, type: type.name, location: location.name, labels: body.labels ?? {} },
  readAhead: (db) => findVmForEngine(db, id),
})

export const vmCreate: Definition = {
  kind: 'vm-create',
  name: 'CREATE',
  resourceType: 'vm',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: forget },
    { name: 'boot', call: bootVm, undoCall: remove, onDeadline: bootDeadline },
    { name: 'finish', tx: finishBoot, isShared: true, onUnmet: whyNotStarted },
  ],
  onAbandon: tearDown,
}

/** Nothing of a failed creation is left behind: its deletion is tried until it holds. */
async function tearDown(tx: Tx, by: Requester, operation: OperationRow): Promise<void> {
  const vm = await findAnyVm(tx, operation.resource_id)
  if (vm) await admitVmDelete(tx, { ...by, projectId: operation.project_id }, vm)
}

async function forget(work: Work, tx: Tx): Promise<void> {
  await forgetVm(tx, await vmOf(work, tx))
}

async function remove(work: Work): Promise<void> {
  await removeVm(work, await vmOf(work))
}
