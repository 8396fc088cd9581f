import type { EventType } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import type { Work } from '../../runner/operation.ts'
import {
  changeGroup,
  findGroup,
  type GroupRow,
  lockGroup,
  updateGroupHealth,
} from '../../store/compute/instance-groups.ts'
import { emit, type NewEvent, system } from '../../store/events/events.ts'
import { instanceGroupView } from '../../views/instances.ts'
import type { ProjectRequester } from '../admission.ts'

/** Returns the group of an operation. Only a deletion removes a group, so it exists during every other operation. */
export async function groupOf(work: Work, db: Queryable = work.services.database): Promise<GroupRow> {
  return requireGroup(await findGroup(db, work.operation.project_id, work.operation.resource_id))
}

/** Locks the group of an operation and its members. */
export async function lockGroupOf(work: Work, tx: Tx): Promise<GroupRow> {
  return requireGroup(await lockGroup(tx, work.operation.project_id, work.operation.resource_id))
}

function requireGroup(group: GroupRow | undefined): GroupRow {
  if (!group) throw new Failure('not_found', 'The instance group no longer exists.')
  return group
}

/** The requester on whose behalf a group's operation changes its members. */
export const requesterOf = ({ operation }: Work): ProjectRequester => ({
  ...system,
  actor: operation.actor,
  requestId: operation.request_id,
  projectId: operation.project_id,
})

export const emitGroup = (
  tx: Tx,
  group: Pick<GroupRow, 'id' | 'project_id' | 'name' | 'labels' | 'desired_count' | 'generation'>,
  type: EventType,
  more: Partial<NewEvent> = {},
): Promise<void> =>
  emit(tx, {
    ...more,
    type,
    resourceType: 'instance_group',
    resourceId: group.id,
    projectId: group.project_id,
    data: {
      name: group.name,
      labels: group.labels,
      desired_count: group.desired_count,
      generation: group.generation,
      ...more.data,
    },
  })

/**
 * Ends a group's update: its state becomes healthy or unhealthy, depending on its members. Returns the
 * group's record.
 */
export async function endGroupUpdate(work: Work, tx: Tx) {
  const { operation } = work
  const more = {
    actor: operation.actor,
    requestId: operation.request_id,
    data: { operation_id: operation.id },
  }
  await changeGroup(tx, operation.resource_id, { state: 'HEALTHY' })
  const changed = await updateGroupHealth(tx, operation.resource_id)
  const group = await groupOf(work, tx)
  await emitGroup(tx, group, changed ? 'instance_group.unhealthy' : 'instance_group.healthy', more)
  return instanceGroupView(group)
}
