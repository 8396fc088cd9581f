import { admitGroupReplace } from '../operations/group/replace.ts'
import type { Services } from '../services.ts'
import { type GroupRow, listGroupsToRepair, lockGroup } from '../store/compute/instance-groups.ts'
import { lockUnfinishedOperations } from '../store/compute/operations.ts'
import { system } from '../store/events/events.ts'

const maxGroups = 100

/**
 * In groups with `on_member_loss: replace`, replaces members that are missing, and unprotected members that have been
 * unreachable for at least `unreachableS`.
 */
export async function repairGroups({ database, config, log }: Services): Promise<void> {
  const { unreachableS } = config.operations
  for (const { id, project_id } of await listGroupsToRepair(database, unreachableS, maxGroups))
    await database
      .transaction(async (tx) => {
        const group = await lockGroup(tx, project_id, id)
        if (!group || (await lockUnfinishedOperations(tx, id)).length > 0) return
        const lost = group.members.filter((member) => isLost(member, unreachableS))
        const isShort = group.members.length < group.desired_count
        if (lost.length > 0 || isShort)
          await admitGroupReplace(tx, { ...system, projectId: project_id }, group, lost)
      })
      .catch((error) =>
        log.info({ err: error, group: id }, 'members of the group not replaced yet, will retry'),
      )
}

const isLost = (
  { state, is_protected, unreachable_s }: GroupRow['members'][number],
  limitS: number,
): boolean => state === 'STATE_UNREACHABLE' && !is_protected && (unreachable_s ?? 0) >= limitS
