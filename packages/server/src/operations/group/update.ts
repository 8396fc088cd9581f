import type { AnnotationUpdate } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import {
  annotateGroup,
  changeGroup,
  clearBootFailures,
  findGroup,
  type GroupRow,
} from '../../store/compute/instance-groups.ts'
import { findInstanceTemplate } from '../../store/compute/instance-templates.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { findVm } from '../../store/compute/vms.ts'
import { instanceGroupView } from '../../views/instances.ts'
import { beginOperation, type ProjectRequester, requireNoOperation } from '../admission.ts'
import { protectionRefusal, recordAnnotation } from '../annotations.ts'
import type { CatalogueCache } from '../catalogue.ts'
import { admitVmDelete } from '../vm/delete.ts'
import { barrierLimits, passBarrier, removeNewMembers } from './barrier.ts'
import { childrenStep } from './children.ts'
import { hasFreeBarrier } from './create.ts'
import { endGroupUpdate } from './group.ts'
import { admitMembers, lowestFree, requireTemplate } from './members.ts'

/** Throws a 409 while another operation changes the group. */
export async function requireNoGroupOperation(tx: Tx, group: GroupRow): Promise<void> {
  await requireNoOperation(tx, group.id, `The instance group ${group.name}`)
}

/** Changes the number of members. The caller has locked the group. */
export async function admitGroupResize(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  group: GroupRow,
  count: number,
): Promise<BegunOperation> {
  await requireNoGroupOperation(tx, group)
  const living = group.members.filter(({ state }) => state !== 'STATE_DELETING')
  return count < living.length
    ? shrink(tx, by, group, living.slice(count), count)
    : grow(tx, catalogue, by, group, count - living.length, count)
}

async function grow(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  group: GroupRow,
  added: number,
  count: number,
): Promise<BegunOperation> {
  if (group.template_id !== null && !(await findInstanceTemplate(tx, by.projectId, group.template_id)))
    throw new Failure('conflict', 'The template of the group was deleted. Set another template_id first.')
  const numbers = lowestFree(group, added)
  const avoidedHosts =
    group.placement_policy === 'spread' ? group.members.flatMap(({ host_id }) => host_id ?? []) : []
  await clearBootFailures(tx, group.id)
  await changeGroup(tx, group.id, { state: 'UPDATING', desiredCount: count, raisesGeneration: added > 0 })
  if (added > 0) await admitMembers(tx, catalogue, by, group, { numbers, avoidedHosts })
  return beginOperation(tx, by, groupGrow, {
    resource: group,
    generation: group.generation,
    request: { desired_count: count },
    scratch: { numbers, from: group.desired_count, isFree: await hasFreeBarrier(tx, by) },
    eventType: 'instance_group.updating',
    eventData: { desired_count: count },
  })
}

async function shrink(
  tx: Tx,
  by: ProjectRequester,
  group: GroupRow,
  leaving: GroupRow['members'],
  count: number,
): Promise<BegunOperation> {
  const refusal = leaving.map((vm) => protectionRefusal('VM', vm)).find((each) => each !== undefined)
  if (refusal) throw refusal
  const children: string[] = []
  for (const { id } of leaving) {
    const vm = (await findVm(tx, by.projectId, id))!
    children.push((await admitVmDelete(tx, by, vm, { isByGroup: true })).id)
  }
  await changeGroup(tx, group.id, { state: 'UPDATING', desiredCount: count, raisesGeneration: true })
  return beginOperation(tx, by, groupShrink, {
    resource: group,
    generation: group.generation,
    request: { desired_count: count },
    scratch: { children },
    eventType: 'instance_group.updating',
    eventData: { desired_count: count },
  })
}

export const groupGrow: Definition = {
  kind: 'instance-group-grow',
  name: 'UPDATE',
  resourceType: 'instance_group',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: restoreCount },
    { name: 'members', tx: passBarrier, undoCall: removeNewMembers, ...barrierLimits },
  ],
}

async function restoreCount(work: Work, tx: Tx): Promise<void> {
  const { resource_id } = work.operation
  await clearBootFailures(tx, resource_id)
  await changeGroup(tx, resource_id, { desiredCount: Number(work.scratch.from), raisesGeneration: true })
  await endGroupUpdate(work, tx)
}

export const groupShrink: Definition = {
  kind: 'instance-group-shrink',
  name: 'UPDATE',
  resourceType: 'instance_group',
  deadlineS: 'configured',
  isRetriedNotUndone: true,
  steps: [childrenStep],
}

/** Sets the template of members that are added later. */
export async function setGroupTemplate(
  tx: Tx,
  by: ProjectRequester,
  group: GroupRow,
  template_id: string,
): Promise<BegunOperation> {
  await requireTemplate(tx, by, template_id)
  await changeGroup(tx, group.id, { templateId: template_id })
  return recordGroupAnnotation(tx, by, group, { template_id })
}

export async function annotateInstanceGroup(
  tx: Tx,
  by: ProjectRequester,
  group: GroupRow,
  request: AnnotationUpdate,
): Promise<BegunOperation> {
  await annotateGroup(tx, group.id, request)
  return recordGroupAnnotation(tx, by, group, request)
}

async function recordGroupAnnotation(
  tx: Tx,
  by: ProjectRequester,
  { id }: GroupRow,
  request: AnnotationUpdate | { template_id: string },
): Promise<BegunOperation> {
  const changed = (await findGroup(tx, by.projectId, id))!
  return recordAnnotation(tx, by, 'instance_group', changed, request, instanceGroupView(changed))
}
