import type { EventType } from '@slipway/contract'
import { Failure, notFound } from '../domain/failure.ts'
import type { Tx } from '../postgres/database.ts'
import { endOperations } from '../store/compute/operation-changes.ts'
import type { OperationRow } from '../store/compute/operation-row.ts'
import { findAnyOperation, retryStuckOperation, takeStuckOperation } from '../store/compute/operations.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { definitions } from './index.ts'

/** Resumes a stuck operation where it stopped, after an operator has fixed the cause. */
export async function retryStuck(tx: Tx, by: Requester, id: string): Promise<OperationRow> {
  const known = await requireOperation(tx, id)
  const row = (await retryStuckOperation(tx, id)) ?? notStuck(known)
  await emitChange(tx, by, 'operation.retried', row)
  tx.signal('operations')
  return row
}

/** Ends a stuck operation as FAILED. `onAbandon` puts its resource into a state in which it can be used or deleted. */
export async function abandonStuck(tx: Tx, by: Requester, id: string): Promise<OperationRow> {
  const known = await requireOperation(tx, id)
  const taken = (await takeStuckOperation(tx, id)) ?? notStuck(known)
  const result = taken.failure ?? { code: 'engine_error', message: 'Abandoned by an operator.' }
  await endOperations(tx, [{ id, token: null, state: 'FAILED', result, stepLog: null }])
  await emitChange(tx, by, 'operation.abandoned', taken)
  await definitions.find(({ kind }) => kind === taken.kind)?.onAbandon?.(tx, by, taken)
  return requireOperation(tx, id)
}

async function requireOperation(tx: Tx, id: string): Promise<OperationRow> {
  const operation = await findAnyOperation(tx, id)
  if (!operation) throw notFound('operation')
  return operation
}

function notStuck({ state }: OperationRow): never {
  throw new Failure('conflict', `The operation is not stuck: it is ${state}.`)
}

const emitChange = (tx: Tx, by: Requester, type: EventType, row: OperationRow): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: row.resource_type,
    resourceId: row.resource_id,
    projectId: row.project_id,
    data: { operation_id: row.id },
  })
