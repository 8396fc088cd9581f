import type { VmCreate } from '@slipway/contract'
import { invalidField, nameTaken, nestFailure } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { TryAgain, type Tx } from '../../postgres/database.ts'
import type { Hold } from '../../store/capacity/holds.ts'
import { disksOfGroup, type GroupRow, lockGroupAdmission } from '../../store/compute/instance-groups.ts'
import { findInstanceTemplate, type InstanceTemplateRow } from '../../store/compute/instance-templates.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { type QuotaAmounts, readQuotas } from '../../store/compute/quotas.ts'
import { findVmName } from '../../store/compute/vms.ts'
import { type ProjectRequester, quotaExceeded } from '../admission.ts'
import { budgetRefusal } from '../budget.ts'
import { reservationChoice } from '../capacity/reserved-placement.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { type LockedDisk, lockDisksFor, requireFree } from '../disk/attachments.ts'
import { pickAddresses } from '../vm/addresses.ts'
import { writeVm } from '../vm/create.ts'
import { reserveRange } from '../vm/location.ts'
import { newDisksOf } from '../vm/new-disks.ts'
import { hostsFor, notOnOneHost, planVm, quotaOf, type VmPlan } from '../vm/plan.ts'
import { noRange } from '../vm/refusals.ts'
import { completeVmBody, type VmBody } from '../vm/template.ts'
import { placeMembers } from './place.ts'
import { notAllFit } from './room.ts'

/** The fields of a group that determine its members. */
export type GroupShape = Pick<GroupRow, 'id' | 'name' | 'template_id' | 'vm' | 'placement_policy'>

export const memberName = (group: { name: string }, number: number) => `${group.name}-${number}`

/** Returns the lowest numbers that no member has. */
export function lowestFree({ members }: Pick<GroupRow, 'members'>, count: number): number[] {
  const used = new Set(members.map(({ number }) => number))
  const free: number[] = []
  for (let number = 1; free.length < count; number++) if (!used.has(number)) free.push(number)
  return free
}

/** Throws a 400 if the project has no such template version. */
export async function requireTemplate(
  tx: Tx,
  by: ProjectRequester,
  id: string,
): Promise<InstanceTemplateRow> {
  const template = await findInstanceTemplate(tx, by.projectId, id)
  if (!template) throw invalidField('template_id', 'must be an instance template of this project')
  return template
}

/** Returns the request for one member, as if it were created alone. */
export async function memberBody(
  tx: Tx,
  by: ProjectRequester,
  group: Pick<GroupShape, 'name' | 'template_id' | 'vm'>,
  number: number,
): Promise<VmBody> {
  const request: VmCreate = {
    ...group.vm,
    name: memberName(group, number),
    ...(group.template_id !== null && { instance_template_id: group.template_id }),
  }
  return completeVmBody(tx, by.projectId, request)
}

/** The members to admit, and the hosts where they must not be placed. */
interface WantedMembers {
  numbers: number[]
  avoidedHosts: string[]
  /** GPUs that are held for the members. */
  hold?: Hold | undefined
  /** True if the service chose the location: if not all members fit there, it may choose another one. */
  mayMove?: boolean
}

/**
 * Admits members of a group, all or none, in the transaction of the request: each becomes a VM with its own operation.
 * If not all fit, the failure says how many fit here, and in which locations all members would fit.
 */
export async function admitMembers(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  group: GroupShape & { location: string },
  wanted: WantedMembers,
): Promise<BegunOperation[]> {
  try {
    return await admit(tx, catalogue, by, group, wanted)
  } catch (error) {
    throw nestFailure('vm', error)
  }
}

async function admit(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  group: GroupShape & { location: string },
  { numbers, avoidedHosts, hold, mayMove = false }: WantedMembers,
): Promise<BegunOperation[]> {
  // Check the request once for all members.
  const body = { ...(await memberBody(tx, by, group, numbers[0]!)), location: group.location }
  const first = await planVm(tx, catalogue, by, body)
  const { type, location, subnet } = first
  const kept = new Set((await disksOfGroup(tx, group.id)).map(({ name }) => name))
  const plans = numbers.map((number) => planOf(first, group, number, kept))

  // Lock what limits the choice of hosts.
  await lockGroupAdmission(tx, location.name, type.family)
  const disks = await lockDisksFor(tx, by.projectId, 'disks', body.disks, {
    location: location.name,
    type,
    disks: first.newDisks,
  })
  requireShareable(disks, numbers.length)
  const requiredHosts = hostsFor(first, disks)
  const isRangeFree = !subnet.is_bridged || (await reserveRange(tx, subnet.id))

  // Read what is free, in one round trip.
  const quota = { projectId: by.projectId, amounts: timesCount(quotaOf(first).amounts, numbers.length) }
  const readNames = plans.map((plan) => findVmName(tx, { projectId: by.projectId, name: plan.body.name }))
  const readBudget = budgetRefusal(tx, by.projectId)
  const readQuota = readQuotas(tx, quota)
  const hasPublicAddress = body.public_ip !== 'none'
  const readAddresses = plans.map(() => pickAddresses(tx, { subnet, location, hasPublicAddress }))
  await Promise.allSettled([...readNames, readBudget, readQuota, ...readAddresses])
  const names = await Promise.all(readNames)
  const reservations = names[0]!.hasReservations ? reservationChoice(by.projectId, body) : undefined
  const wanted = {
    location: location.name,
    family: type.family,
    gpuCount: type.gpuCount,
    allowedHosts: requiredHosts.length > 0 ? requiredHosts : null,
    count: numbers.length,
    policy: group.placement_policy,
    avoided: avoidedHosts,
  }
  const placements = await placeMembers(tx, wanted, { hold, reservations })

  // Refuse based on what was read, in the order of a single creation.
  const taken = names.findIndex(({ isTaken }) => isTaken)
  if (taken !== -1) throw nameTaken('VM', plans[taken]!.body.name)
  await requireFree(tx, disks)
  const addresses = await Promise.all(readAddresses)
  if (!isRangeFree) throw await noRange(tx, catalogue, first)
  if (requiredHosts.length > 1) throw notOnOneHost()
  if (placements.length < numbers.length) {
    if (hold) throw new TryAgain('the hold was lost')
    const missing = { fits: placements.length, count: numbers.length, mayMove }
    throw await notAllFit(tx, catalogue, first, group.placement_policy, missing)
  }
  const overBudget = await readBudget
  if (overBudget) throw overBudget
  const shortage = (await readQuota).take(quota)
  if (shortage) throw quotaExceeded(shortage)

  // Write the members.
  const operations: BegunOperation[] = []
  for (const [index, plan] of plans.entries()) {
    const claims = {
      placement: placements[index]!,
      addresses: addresses[index]!,
      disks,
      now: names[index]!.now,
    }
    operations.push(await writeVm(tx, catalogue, plan, { ...claims, request: plan.body }))
  }
  return operations
}

function planOf(first: VmPlan, group: GroupShape, number: number, kept: ReadonlySet<string>): VmPlan {
  const body = { ...first.body, name: memberName(group, number) }
  const disks = newDisksOf(first.by.projectId, body, first.type, first.location.name, kept)
  const newDisks = disks.map((disk) => ({ ...disk, groupId: group.id }))
  const member = { groupId: group.id, number }
  return { ...first, id: uuid(), body, member, newDisks }
}

/** Throws a 400 if several members would write to the same disk. */
export function requireShareable(disks: LockedDisk[], count: number): void {
  const index = disks.findIndex(({ disk, mode }) => disk.type === 'persistent-ssd' && mode === 'read-write')
  if (count > 1 && index !== -1)
    throw invalidField(
      `disks/${index}/mode`,
      'must be read-only: several members cannot write to one disk. Use new_disks or a shared volume.',
    )
}

export const timesCount = (amounts: QuotaAmounts, count: number): QuotaAmounts =>
  Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, amount * count]))
