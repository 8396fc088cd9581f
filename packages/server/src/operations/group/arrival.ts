import { Failure } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { type Outcome, type Work, wait } from '../../runner/operation.ts'
import { recordArrival, recordBootFailure } from '../../store/compute/instance-groups.ts'
import { makeOperationDue } from '../../store/compute/operations.ts'
import type { VmRow } from '../../store/compute/vms.ts'
import { lockVmOf } from '../vm/vm.ts'

/** How much longer a group may take than a single VM, because members may be placed a second time. */
export const barrierGraceS = 600
/** The longest time between two checks. A check notices if the VM was deleted in the meantime. */
const longestPauseMs = 30_000

/**
 * The last step of a new member. It records that the member responds, then waits. The operation of the group
 * ends this step when all members respond (`barrier.ts`).
 */
export async function finishMember(work: Work, tx: Tx): Promise<Outcome> {
  const { operation, scratch } = work
  const vm = await lockVmOf(work, tx)
  if (vm.state !== 'STATE_CREATING')
    throw new Failure('conflict', `The VM changed to ${vm.state} in the meantime.`)
  const isFirstArrival = await recordArrival(tx, {
    id: operation.resource_id,
    sshDestination: String(scratch.sshDestination ?? ''),
    firewallGeneration: Number(scratch.firewallGeneration ?? 0),
  })
  if (isFirstArrival && (await makeOperationDue(tx, String(scratch.memberOf))) > 0) tx.signal('operations')
  return wait(longestPauseMs)
}

/** Records why a new member has failed, for the operation of the group. */
export async function reportBootFailure({ failure, scratch }: Work, tx: Tx, vm: VmRow): Promise<void> {
  if (scratch.memberOf === undefined || vm.group_number === null) return
  const { code = 'engine_error', message = '' } = failure ?? {}
  await recordBootFailure(tx, String(scratch.memberOf), {
    number: vm.group_number,
    host_id: vm.host_id,
    code,
    message,
  })
  if ((await makeOperationDue(tx, String(scratch.memberOf))) > 0) tx.signal('operations')
}
