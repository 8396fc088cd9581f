import type { Tx } from '../../postgres/database.ts'
import { updateGroupHealth } from '../../store/compute/instance-groups.ts'
import { emit } from '../../store/events/events.ts'

/**
 * Called after a member has changed: updates its group's health, and emits an event if the health has
 * changed.
 */
export async function updateGroupHealthOf(
  tx: Tx,
  vm: { id: string; group_id: string | null; project_id: string },
): Promise<void> {
  const group = vm.group_id === null ? undefined : await updateGroupHealth(tx, vm.group_id)
  if (!group) return
  await emit(tx, {
    type: group.state === 'HEALTHY' ? 'instance_group.healthy' : 'instance_group.unhealthy',
    resourceType: 'instance_group',
    resourceId: group.id,
    projectId: group.project_id,
    data: {
      name: group.name,
      labels: group.labels,
      desired_count: group.desired_count,
      generation: group.generation,
      vm_id: vm.id,
    },
  })
}
