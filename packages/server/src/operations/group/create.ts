import { anyLocation, type InstanceGroupCreate, type PlacementPolicyName } from '@slipway/contract'
import { nameTaken, nestFailure } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import type { Tx } from '../../postgres/database.ts'
import type { Definition, Work } from '../../runner/operation.ts'
import type { Hold } from '../../store/capacity/holds.ts'
import {
  countFailedGroups,
  deleteGroup,
  findGroup,
  insertGroup,
  type NewGroup,
} from '../../store/compute/instance-groups.ts'
import type { BegunOperation, OperationRow } from '../../store/compute/operation-row.ts'
import type { Requester } from '../../store/events/events.ts'
import { beginOperation, type ProjectRequester, requireOrganizationQuota } from '../admission.ts'
import { requeueAfterFailedBoot } from '../capacity/boot-failures.ts'
import { type CatalogueCache, requireLocation } from '../catalogue.ts'
import { writeOrRefuse } from '../conflicts.ts'
import { barrierLimits, passBarrier, removeNewMembers } from './barrier.ts'
import { admitGroupDelete } from './delete.ts'
import { admitMembers, memberBody, requireTemplate } from './members.ts'
import { fittingLocations } from './room.ts'

/** How many failed groups of an organization are free of charge within a day. */
const freeFailures = 3

/**
 * Admits a group with all its members, or throws the refusal. If not all members fit, the refusal has `fits`
 * and `available_locations`, and the transaction is rolled back. With a `hold`, the members get the GPUs that
 * are held for them.
 */
export async function admitGroupCreate(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  request: InstanceGroupCreate,
  hold?: Hold,
): Promise<BegunOperation> {
  const { name, desired_count: count, template_id, vm = {} } = request
  const policy = await policyOf(tx, by, request)
  const { location, mayMove } = await locationOf(tx, catalogue, by, request, policy)
  const group: NewGroup = {
    id: uuid(),
    projectId: by.projectId,
    name,
    labels: request.labels ?? {},
    description: request.description ?? '',
    isProtected: request.deletion_protection ?? false,
    templateId: template_id ?? null,
    vm: JSON.stringify(vm),
    location,
    desiredCount: count,
    placementPolicy: policy,
    onMemberLoss: request.on_member_loss ?? 'none',
  }
  const taken = nameTaken('instance group', name)
  await writeOrRefuse({ instance_groups_project_id_name_key: taken }, () => insertGroup(tx, group))
  await requireOrganizationQuota(tx, by, 'instance_groups')
  const shape = { id: group.id, name, template_id: group.templateId, vm, placement_policy: policy, location }
  const numbers = Array.from({ length: count }, (_, index) => index + 1)
  await admitMembers(tx, catalogue, by, shape, { numbers, avoidedHosts: [], hold, mayMove })
  return beginOperation(tx, by, groupCreate, {
    resource: { id: group.id, name, location, labels: group.labels },
    generation: 1,
    request,
    scratch: { numbers, isFree: await hasFreeBarrier(tx, by) },
    eventType: 'instance_group.creating',
    eventData: { desired_count: count, location },
  })
}

/**
 * Returns the placement policy of the request, or else of its template. Throws a 400 if the template does not
 * exist.
 */
export async function policyOf(
  tx: Tx,
  by: ProjectRequester,
  { template_id, placement_policy }: InstanceGroupCreate,
): Promise<PlacementPolicyName> {
  const template = template_id === undefined ? undefined : await requireTemplate(tx, by, template_id)
  return placement_policy ?? template?.body.placement_policy ?? 'unspecified'
}

/**
 * The time that members wait for each other is free, unless many of the organization's groups have failed
 * recently.
 */
export async function hasFreeBarrier(tx: Tx, { organizationId }: ProjectRequester): Promise<boolean> {
  return organizationId === null || (await countFailedGroups(tx, organizationId)) < freeFailures
}

/**
 * Returns the location of all members. For `any`, this is the first location where all of them fit, or else the one
 * with the most room.
 */
async function locationOf(
  tx: Tx,
  catalogue: CatalogueCache,
  by: ProjectRequester,
  { name, desired_count: count, template_id, vm = {} }: InstanceGroupCreate,
  policy: PlacementPolicyName,
): Promise<{ location: string; mayMove: boolean }> {
  try {
    const body = await memberBody(tx, by, { name, template_id: template_id ?? null, vm }, 1)
    if (body.location !== anyLocation)
      return { location: (await requireLocation(tx, body.location)).name, mayMove: false }
    const { best } = await fittingLocations(tx, catalogue, by, { body, count, policy })
    return { location: best, mayMove: true }
  } catch (error) {
    throw nestFailure('vm', error)
  }
}

export const groupCreate: Definition = {
  kind: 'instance-group-create',
  name: 'CREATE',
  resourceType: 'instance_group',
  deadlineS: 'configured',
  steps: [
    { name: 'admit', undoTx: forgetGroup },
    { name: 'members', tx: passBarrier, undoCall: removeNewMembers, ...barrierLimits },
  ],
  onAbandon: deleteAbandoned,
}

async function forgetGroup({ operation }: Work, tx: Tx): Promise<void> {
  await deleteGroup(tx, operation.resource_id)
  await requeueAfterFailedBoot(tx, operation.id)
}

/** Deletes the group of an abandoned creation. A deletion is retried until it succeeds, so that nothing remains. */
async function deleteAbandoned(
  tx: Tx,
  by: Requester,
  { project_id, resource_id }: OperationRow,
): Promise<void> {
  const group = await findGroup(tx, project_id, resource_id)
  if (group) await admitGroupDelete(tx, { ...by, projectId: project_id }, group, false)
}
