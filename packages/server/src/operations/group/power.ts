import { type VmAction, vmActions } from '@slipway/contract'
import { Failure, outOfStock } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import type { Definition } from '../../runner/operation.ts'
import { changeGroup, type GroupRow, lockGroupAdmission } from '../../store/compute/instance-groups.ts'
import type { BegunOperation } from '../../store/compute/operation-row.ts'
import { findVm, type VmRow } from '../../store/compute/vms.ts'
import { beginOperation, type ProjectRequester } from '../admission.ts'
import { admitVmStart } from '../vm/start.ts'
import { admitVmStop } from '../vm/stop.ts'
import { childrenStep } from './children.ts'
import { requireNoGroupOperation } from './update.ts'

/** Starts the stopped members: either all of them or none. The caller has locked the group. */
export async function admitGroupStart(
  tx: Tx,
  by: ProjectRequester,
  group: GroupRow,
): Promise<BegunOperation> {
  const stopped = await membersFor(tx, by, group, 'START')
  const [family] = stopped.map((vm) => vm.family)
  if (family) await lockGroupAdmission(tx, group.location, family)
  return begin(tx, by, group, groupStart, stopped, admitVmStart)
}

/** Stops all running members. The caller has locked the group. */
export const admitGroupStop = async (
  tx: Tx,
  by: ProjectRequester,
  group: GroupRow,
): Promise<BegunOperation> =>
  begin(tx, by, group, groupStop, await membersFor(tx, by, group, 'STOP'), admitVmStop)

async function membersFor(tx: Tx, by: ProjectRequester, group: GroupRow, action: VmAction): Promise<VmRow[]> {
  await requireNoGroupOperation(tx, group)
  const { from } = vmActions[action]
  const matching = group.members.filter(({ state }) => from.includes(state))
  if (matching.length === 0)
    throw new Failure(
      'conflict',
      `${action} requires at least one member in ${from.join(' or ')}; this group has none.`,
    )
  return Promise.all(matching.map(async ({ id }) => (await findVm(tx, by.projectId, id))!))
}

async function begin(
  tx: Tx,
  by: ProjectRequester,
  group: GroupRow,
  definition: Definition,
  members: VmRow[],
  admit: (tx: Tx, by: ProjectRequester, vm: VmRow) => Promise<BegunOperation>,
): Promise<BegunOperation> {
  const children: string[] = []
  for (const vm of members) {
    const { id } = await admit(tx, by, vm).catch((error) =>
      refuseAll(error, group, { fits: children.length, total: members.length }),
    )
    children.push(id)
  }
  await changeGroup(tx, group.id, { state: 'UPDATING' })
  return beginOperation(tx, by, definition, {
    resource: group,
    generation: group.generation,
    scratch: { children },
    eventType: 'instance_group.updating',
  })
}

/** Adds to an out-of-stock error how many members could have been started. */
function refuseAll(
  error: unknown,
  { location }: GroupRow,
  { fits, total }: { fits: number; total: number },
): never {
  if (!(error instanceof Failure) || error.code !== 'out_of_stock') throw error
  const message = `Only ${fits} of ${total} stopped members fit in ${location} now, so none was started. Try again later.`
  throw outOfStock(message, [], { fits })
}

const powerChange = (kind: string, name: 'START' | 'STOP'): Definition => ({
  kind,
  name,
  resourceType: 'instance_group',
  deadlineS: 'configured',
  isRetriedNotUndone: true,
  steps: [childrenStep],
})

export const groupStart = powerChange('instance-group-start', 'START')
export const groupStop = powerChange('instance-group-stop', 'STOP')
