import { Failure } from '../../domain/failure.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import { allEnded } from '../../store/all-ended.ts'
import { alone, type Settled } from '../../store/batches.ts'
import { type BegunOperation, beginOperations, type OperationRow } from '../../store/compute/operations.ts'
import { claimGpus } from '../../store/compute/placement.ts'
import { lookAtQuotas, takeQuotas } from '../../store/compute/quotas.ts'
import { insertVms } from '../../store/compute/vm-changes.ts'
import { findAnyVm, findVmForEngine, takenVmNames } from '../../store/compute/vms.ts'
import { TryAgain, type Tx } from '../../store/database.ts'
import type { Requester } from '../../store/events/events.ts'
import { carryRange, holdCarriedRanges } from '../../store/network/carried-ranges.ts'
import { operationOf, quotaExceeded, requireIdle } from '../admission.ts'
import { budgetRefusals } from '../budget.ts'
import type { CatalogueMemory } from '../catalogue.ts'
import { admitAttachments, hostsOfLocalDisks, lockDisksFor } from '../disk/attachments.ts'
import { bootDeadline, bootVm, finishBoots } from './boot.ts'
import { admitVmDelete } from './delete.ts'
import { checkDraft, Draft, quotaOf, rowOf, type VmCreation } from './draft.ts'
import { chooseLocation } from './location.ts'
import {
  outOfStock,
  outOfStockEverywhere,
  type Placement,
  pickAddresses,
  placeVms,
  rangeTaken,
  vmNameTaken,
} from './place.ts'
import { forgetVm } from './state.ts'
import { removeVm, vmOf } from './vm.ts'

/**
 * GPUs, addresses, names, disks and quota are held when this commits: a 200 is a promise. First it looks, and refuses each
 * creation for itself alone, by what the rows say; then it writes what is left in one go with the commit. If less can be
 * written than was seen, somebody else was faster, and all of it begins anew.
 */
export async function admitVmCreates(
  tx: Tx,
  catalogue: CatalogueMemory,
  requests: VmCreation[],
  isAlone: boolean,
): Promise<Settled<BegunOperation>[]> {
  const drafts = requests.map((request) => new Draft(request))
  const open = () => drafts.filter(({ refusal }) => refusal === undefined)
  await Promise.all(drafts.map((draft) => draft.refuseUnless(() => checkDraft(tx, catalogue, draft))))
  if (open().length === 0) return drafts.map(({ refusal }) => refusal!)
  const { budgets, quotas, placed, now } = await lookAround(tx, open(), isAlone)
  await carryRanges(tx, catalogue, open(), isAlone)
  // From here on hosts are locked, and others may want them: little is left to do.
  await place(tx, catalogue, open(), placed, isAlone)
  for (const draft of open()) draft.refusal = budgets.get(draft.by.projectId)
  const covered = open()
  for (const [index, shortage] of quotas.take(covered.map(quotaOf)).entries())
    if (shortage) covered[index]!.refusal = quotaExceeded(shortage)
  const operations = await admit(tx, catalogue, open(), now)
  return drafts.map((draft) => draft.refusal ?? operations.get(draft)!)
}

/** The same for one, thrown. */
export async function admitVmCreate(
  tx: Tx,
  catalogue: CatalogueMemory,
  request: VmCreation,
): Promise<BegunOperation> {
  const [admitted] = await admitVmCreates(tx, catalogue, [request], true)
  if (admitted instanceof Failure) throw admitted
  return admitted as BegunOperation
}

type Placed = Map<Draft, Placement | undefined | typeof alone>

/**
 * Looks at names, disks and addresses, in the order of their refusals. Returns what budgets and quotas will say at the end;
 * and where each goes, unless disks or bridges have a say in that: then hosts are locked later.
 */
async function lookAround(tx: Tx, drafts: Draft[], isAlone: boolean) {
  const goesAnywhere = drafts.every(({ body, subnet }) => !body.disks?.length && !subnet.is_bridged)
  const [budgets, quotas, names, addresses, placed] = await allEnded([
    budgetRefusals(
      tx,
      drafts.map(({ by }) => by.projectId),
    ),
    lookAtQuotas(tx, drafts.map(quotaOf)),
    takenVmNames(
      tx,
      drafts.map(({ name }) => name),
    ),
    pickAddresses(
      tx,
      drafts.map(({ subnet, location, hasPublicAddress }) => ({ subnet, location, hasPublicAddress })),
      isAlone,
    ),
    goesAnywhere ? placesFor(tx, drafts, isAlone) : undefined,
  ])
  for (const [index, draft] of drafts.entries()) {
    await draft.refuseUnless(() => lockDisks(tx, draft))
    const { refusal } = draft
    const comesAfterName = !(refusal instanceof Failure) || refusal.code === 'conflict'
    const found = addresses[index]!
    if (comesAfterName && names.has(draft.name)) draft.refusal = vmNameTaken(draft.body.name)
    else if (found === alone || found instanceof Failure) draft.refusal ??= found
    else draft.addresses = found
  }
  return { budgets, quotas, placed, now: names.now }
}

async function lockDisks(tx: Tx, draft: Draft): Promise<void> {
  const { by, body, location, type } = draft
  const vm = { location: location.name, type }
  draft.disks = await lockDisksFor(tx, by.projectId, 'disks', body.disks ?? [], vm)
  for (const { disk } of draft.disks) await requireIdle(tx, disk.id, `The disk ${disk.name}`)
  if (draft.isStorageLocal) draft.allowedHosts = hostsOfLocalDisks(draft.disks)
}

async function placesFor(tx: Tx, drafts: Draft[], isAlone: boolean): Promise<Placed> {
  const places = await placeVms(
    tx,
    drafts.map(({ location, type, allowedHosts }) => ({
      location: location.name,
      family: type.family,
      gpuCount: type.gpuCount,
      allowedHosts,
    })),
    isAlone,
  )
  return new Map(drafts.map((draft, index) => [draft, places[index]]))
}

async function place(
  tx: Tx,
  catalogue: CatalogueMemory,
  drafts: Draft[],
  known: Placed | undefined,
  isAlone: boolean,
): Promise<void> {
  const placed = known ?? (await placesFor(tx, drafts, isAlone))
  for (const draft of drafts) {
    const placement = placed.get(draft)
    if (placement === alone) draft.refusal = alone
    else if (placement) draft.placement = placement
    else
      draft.refusal = await withoutPlace(tx, catalogue, draft, isAlone, () =>
        outOfStock(tx, draft.type, draft.location.name),
      )
  }
}

/** Where hosts have bridges, they carry the ranges of these VMs from now on. */
async function carryRanges(
  tx: Tx,
  catalogue: CatalogueMemory,
  drafts: Draft[],
  isAlone: boolean,
): Promise<void> {
  const bridged = drafts.filter(({ subnet }) => subnet.is_bridged)
  if (bridged.length === 0) return
  const held = await holdCarriedRanges(
    tx,
    bridged.map(({ subnet }) => subnet.id),
  )
  for (const draft of bridged.filter(({ subnet }) => !held.has(subnet.id)))
    if (!isAlone) draft.refusal = alone
    else if (!(await carryRange(tx, draft.subnet.id)))
      draft.refusal = await withoutPlace(tx, catalogue, draft, isAlone, async () => {
        const { subnet_id, ...elsewhere } = draft.body
        const { fitting } = await chooseLocation(tx, catalogue, draft.by.projectId, elsewhere)
        return rangeTaken(draft.subnet, fitting)
      })
}

/** Why it has no place in its location, unless it may go to another one that has. */
async function withoutPlace(
  tx: Tx,
  catalogue: CatalogueMemory,
  draft: Draft,
  isAlone: boolean,
  refusalHere: () => Promise<Failure>,
): Promise<Failure | typeof alone> {
  if (!draft.isAnywhere) return refusalHere()
  const { fitting } = await chooseLocation(tx, catalogue, draft.by.projectId, draft.body)
  if (fitting.length === 0) return outOfStockEverywhere(tx, draft.type)
  // Somebody took the last one in the location that was chosen, and there is another.
  if (isAlone) throw new TryAgain('the VM fits elsewhere')
  return alone
}

/** Writes what was admitted. Quotas come with the last rows: nobody waits for them longer than for these. */
async function admit(
  tx: Tx,
  catalogue: CatalogueMemory,
  drafts: Draft[],
  now: Date,
): Promise<Map<Draft, BegunOperation>> {
  if (drafts.length === 0) return new Map()
  await tx.withCommit(
    insertVms(tx, drafts.map(rowOf)).catch((error) => {
      // It begins anew, and what was remembered may be the reason.
      catalogue.forget()
      throw error
    }),
  )
  await claimGpus(
    tx,
    drafts.map(({ id, placement }) => ({ vmId: id, gpuIds: placement.gpuIds })),
  )
  for (const { id, disks, isStorageLocal, placement } of drafts)
    await admitAttachments(tx, id, disks, isStorageLocal ? placement.hostId : null)
  await takeQuotas(tx, drafts.map(quotaOf))
  const operations = await beginOperations(tx, drafts.map(beginningOf), now)
  return new Map(drafts.map((draft, index) => [draft, operations[index]!]))
}

const beginningOf = ({ id, by, body, type, location }: Draft) =>
  operationOf(by, vmCreate, {
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
    { name: 'finish', txAll: finishBoots },
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
