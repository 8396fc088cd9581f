import type { OperationName, OperationResourceType } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import type { OperationRow } from './operation-row.ts'

/** A change that was made in the transaction of its request. */
interface FinishedOperation {
  id: string
  projectId: string
  kind: string
  name: OperationName
  resourceType: OperationResourceType
  resourceId: string
  location: string
  generation: number
  request: unknown
  result: unknown
  actor: string
  requestId: string
}

type StoredOperation = Omit<FinishedOperation, 'request' | 'result'> & { request: string; result: string }

// The operation is never in the queue: no worker claims it, and it blocks no other operation.
const insert = statement<OperationRow, StoredOperation>(
  'operation_insert_finished',
  `INSERT INTO operations (id, project_id, kind, name, resource_type, resource_id, location, generation, request, result,
                           state, completed_at, actor, request_id)
   VALUES (:id, :projectId, :kind, :name, :resourceType, :resourceId, :location, :generation, :request, :result,
           'SUCCEEDED', slipway_now(), :actor, :requestId) RETURNING *`,
)

export const insertFinishedOperation = async (tx: Tx, operation: FinishedOperation): Promise<OperationRow> =>
  (await insert.one(tx, {
    ...operation,
    request: JSON.stringify(operation.request),
    result: JSON.stringify(operation.result),
  }))!
