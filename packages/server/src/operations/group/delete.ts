import type { Tx } from '../../postgres/database.ts'
import { type Definition, done, next, type Outcome, type Work, wait } from '../../runner/operation.ts'
import { lockDisks } from '../../store/compute/disks.ts'
import { changeGroup, deleteGroup, disksOfGroup, type GroupRow } from '../../store/compute/instance-groups.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { findVm } from '../../store/compute/vms.ts'
import {
  beginOperation,
  cancelForDeletion,
  type ProjectRequester,
  waitForCancelledOperations,
} from '../admission.ts'
import { protectionRefusal } from '../annotations.ts'
import { admitDiskDelete } from '../disk/delete.ts'
import { admitVmDelete } from '../vm/delete.ts'
import { emitGroup, groupOf, lockGroupOf, requesterOf } from './group.ts'

const pauseMs = 250

/**
 * Admits the deletion of a group and cancels the group's unfinished operation. A repeated request gets the same
 * deletion. The caller has locked the group.
 */
export async function admitGroupDelete(
  tx: Tx,
  by: ProjectRequester,
  group: GroupRow,
  deletesDisks: boolean,
): Promise<BegunOperation> {
  const deletion = await cancelForDeletion(tx, groupDelete, by, group.id)
  if (deletion) return deletion
  await changeGroup(tx, group.id, { state: 'DELETING' })
  return beginOperation(tx, by, groupDelete, {
    resource: group,
    generation: group.generation,
    scratch: { deletesDisks },
    eventType: 'instance_group.deleting',
  })
}

/** Throws a 409 if the group or one of its members is protected. */
export function refuseProtected(group: GroupRow): void {
  const refusal =
    protectionRefusal('instance group', group) ??
    group.members.map((vm) => protectionRefusal('VM', vm)).find((each) => each !== undefined)
  if (refusal) throw refusal
}

export const groupDelete: Definition = {
  kind: 'instance-group-delete',
  name: 'DELETE',
  resourceType: 'instance_group',
  deadlineS: 'configured',
  isRetriedNotUndone: true,
  steps: [
    { name: 'wait_for_cancelled', call: waitForCancelledOperations },
    { name: 'members', tx: removeMembers },
    { name: 'disks', tx: removeDisks },
    { name: 'release', tx: release },
  ],
}

async function removeMembers(work: Work, tx: Tx): Promise<Outcome> {
  const { members } = await lockGroupOf(work, tx)
  for (const { id, state } of members) {
    const vm = state === 'STATE_DELETING' ? undefined : await findVm(tx, work.operation.project_id, id)
    if (vm) await admitVmDelete(tx, requesterOf(work), vm, { isByGroup: true })
  }
  return members.length > 0 ? wait(pauseMs) : next()
}

/** Deletes the disks of the group, except protected disks and disks that are now attached to another VM. */
async function removeDisks(work: Work, tx: Tx): Promise<Outcome> {
  const { project_id, resource_id } = work.operation
  if (work.scratch.deletesDisks !== true) return next()
  const ids = (await disksOfGroup(tx, resource_id)).map(({ id }) => id)
  const disks = await lockDisks(tx, project_id, ids)
  const detached = disks.filter(({ attached_to, is_protected }) => attached_to.length === 0 && !is_protected)
  for (const disk of detached)
    if (disk.state !== 'deleting') await admitDiskDelete(tx, requesterOf(work), disk)
  return detached.length > 0 ? wait(pauseMs) : next()
}

async function release(work: Work, tx: Tx): Promise<Outcome> {
  const { actor, request_id: requestId, id } = work.operation
  const group = await groupOf(work, tx)
  await deleteGroup(tx, group.id)
  await emitGroup(tx, group, 'instance_group.deleted', { actor, requestId, data: { operation_id: id } })
  return done(null)
}
