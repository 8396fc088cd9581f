import type { Tx } from '../../postgres/database.ts'
import { judgeGroup } from '../../store/compute/instance-groups.ts'
import { emit } from '../../store/events/events.ts'

/** A member has changed: its group may have become healthy or unhealthy, and says so. */
export async function judgeGroupOf(
  tx: Tx,
  vm: { id: string; group_id: string | null; project_id: string },
): Promise<void> {
  const group = vm.group_id === null ? undefined : await judgeGroup(tx, vm.group_id)
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
