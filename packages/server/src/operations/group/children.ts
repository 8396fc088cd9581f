import type { FailureCode } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { done, fail, type Outcome, type Step, type Work, wait } from '../../runner/operation.ts'
import { findChildOperations } from '../../store/compute/operations.ts'
import { nextInspectionMs } from '../engine-work.ts'
import { endGroupUpdate, lockGroupOf } from './group.ts'

/** Waits until the operations of the members have ended. If one has failed, the operation of the group fails as well. */
async function waitForChildren(work: Work, tx: Tx): Promise<Outcome> {
  await lockGroupOf(work, tx)
  const children = await findChildOperations(tx, work.scratch.children as string[])
  if (children.some(({ state }) => state === 'IN_PROGRESS'))
    return wait(nextInspectionMs(work.operation.started_at.getTime(), work.nowMs))
  const group = await endGroupUpdate(work, tx)
  const failed = children.find(({ state, result }) => state === 'FAILED' && result?.code !== 'cancelled')
  if (!failed) return done(group)
  const { code = 'engine_error', message = '' } = failed.result ?? {}
  return fail(code as FailureCode, message)
}

/** The only step of an operation that waits for the operations of its members. */
export const childrenStep: Step = { name: 'members', tx: waitForChildren }
