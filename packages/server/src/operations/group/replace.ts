import type { Tx } from '../../postgres/database.ts'
import { type Definition, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import { changeGroup, clearBootFailures, type GroupRow } from '../../store/compute/instance-groups.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { findVm } from '../../store/compute/vms.ts'
import { beginOperation, type ProjectRequester } from '../admission.ts'
import { CatalogueCache } from '../catalogue.ts'
import { admitVmDelete } from '../vm/delete.ts'
import { barrierLimits, passBarrier, removeNewMembers } from './barrier.ts'
import { endGroupUpdate, lockGroupOf, requesterOf } from './group.ts'
import { admitMembers, lowestFree, memberName } from './members.ts'

const pauseMs = 250

/**
 * Replaces members that were lost with their hosts, or that an earlier replacement could not place. The new VM has
 * the name and number of the old VM, and another address. The old VM is deleted, and its host removes it
 * when the host returns. The caller has locked the group.
 */
export async function admitGroupReplace(
  tx: Tx,
  by: ProjectRequester,
  group: GroupRow,
  lost: GroupRow['members'],
): Promise<BegunOperation> {
  const living = group.members.filter(({ state }) => state !== 'STATE_DELETING')
  const missing = lowestFree(group, Math.max(0, group.desired_count - living.length))
  const replaced = [...lost.map(({ name }) => name), ...missing.map((number) => memberName(group, number))]
  for (const { id } of lost) {
    const vm = await findVm(tx, by.projectId, id)
    if (vm) await admitVmDelete(tx, by, vm, { isByGroup: true })
  }
  await clearBootFailures(tx, group.id)
  await changeGroup(tx, group.id, { state: 'UPDATING', raisesGeneration: true })
  return beginOperation(tx, by, groupReplace, {
    resource: group,
    generation: group.generation,
    request: { replaced },
    scratch: { numbers: [...lost.map(({ number }) => number), ...missing] },
    eventType: 'instance_group.updating',
    eventData: { replaced },
  })
}

export const groupReplace: Definition = {
  kind: 'instance-group-replace',
  name: 'REPLACE',
  resourceType: 'instance_group',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: async (work, tx) => void (await endGroupUpdate(work, tx)) },
    { name: 'place', tx: placeAfterRemoval, undoCall: removeNewMembers, graceS: barrierLimits.graceS ?? 0 },
    { name: 'members', tx: passBarrier, undoCall: removeNewMembers, ...barrierLimits },
  ],
}

/** Waits until the lost members are hidden, because only then are their names and numbers free. */
async function placeAfterRemoval(work: Work, tx: Tx): Promise<Outcome> {
  const group = await lockGroupOf(work, tx)
  const numbers = work.scratch.numbers as number[]
  if (group.members.some(({ number }) => numbers.includes(number))) return wait(pauseMs)
  const avoidedHosts =
    group.placement_policy === 'spread' ? group.members.flatMap(({ host_id }) => host_id ?? []) : []
  await admitMembers(tx, new CatalogueCache(), requesterOf(work), group, { numbers, avoidedHosts })
  return next()
}
