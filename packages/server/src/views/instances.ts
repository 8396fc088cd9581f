import type { InstanceGroup, InstanceTemplate } from '@slipway/contract'
import { hideScripts } from '../domain/guest/scripts.ts'
import { time } from '../postgres/time.ts'
import type { GroupRow } from '../store/compute/instance-groups.ts'
import type { InstanceTemplateRow } from '../store/compute/instance-templates.ts'

/** Scripts may contain secrets, so viewers see only their digests. */
export const instanceTemplateView = (row: InstanceTemplateRow, showsScripts: boolean): InstanceTemplate => ({
  id: row.id,
  name: row.name,
  version: row.version,
  project_id: row.project_id,
  created_at: time(row.created_at),
  ...(showsScripts ? row.body : hideScripts(row.body)),
})

/** A member that is being deleted no longer has a rank, and is not shown. */
export function instanceGroupView(row: GroupRow): InstanceGroup {
  const members = row.members.filter(({ state }) => state !== 'STATE_DELETING')
  const running = members.filter(({ state }) => state === 'STATE_RUNNING')
  const idsOf = (list: typeof members) => list.map(({ id }) => id)
  return {
    id: row.id,
    name: row.name,
    template_id: row.template_id ?? '',
    project_id: row.project_id,
    state: row.state,
    running_instance_count: running.length,
    desired_count: row.desired_count,
    instances: idsOf(members),
    active_instances: idsOf(running),
    inactive_instances: idsOf(members.filter((member) => !running.includes(member))),
    created_at: time(row.created_at),
    updated_at: time(row.updated_at),
    location: row.location,
    placement_policy: row.placement_policy,
    on_member_loss: row.on_member_loss,
    generation: row.generation,
    members: members.map(({ id, name, private_address, state }, rank) => ({
      vm_id: id,
      rank,
      name,
      private_address,
      state,
    })),
    labels: row.labels,
    description: row.description,
    deletion_protection: row.is_protected,
  }
}
