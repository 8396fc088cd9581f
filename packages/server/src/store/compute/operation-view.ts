import type { Operation, OperationResourceType, OperationState } from '@slipway/contract'
import type { Queryable } from '../../postgres/database.ts'
import { json, jsonSql, object, plain, text, time } from '../../postgres/json.ts'
import { keyedStatement } from '../../postgres/keyed.ts'
import { statement } from '../../postgres/statement.ts'
import { time as timeText } from '../../postgres/time.ts'
import type { BegunOperation } from './operation-row.ts'

const recordWith = (request: string) =>
  jsonSql(
    object<Operation>({
      operation_id: plain('o.id'),
      state: text('o.state'),
      metadata: object<Operation['metadata']>({
        operation_name: text('o.name'),
        id: plain('o.resource_id'),
        type: text('o.resource_type'),
        request: json(request),
      }),
      result: json('o.result'),
      started_at: time('o.started_at'),
      completed_at: time('o.completed_at'),
    }),
  )

/** The operation that clients see, as SQL on a row `o` of operations. */
export const operationRecord = recordWith('o.request')

/** The operation as lists and viewers see it, with digests in place of scripts. */
export const listedOperationRecord = recordWith('coalesce(o.listed_request, o.request)')

/** Converts a row to the operation that clients see. */
export const operationView = (row: BegunOperation): Operation => ({
  operation_id: row.id,
  state: row.state,
  metadata: {
    operation_name: row.name,
    id: row.resource_id,
    type: row.resource_type,
    request: row.request,
  },
  result: row.result,
  started_at: timeText(row.started_at),
  completed_at: timeText(row.completed_at),
})

interface OperationRecord {
  id: string
  state: OperationState
  resource_type: OperationResourceType
  record: string
}

const columnsWith = (record: string) => `o.id, o.state, o.resource_type, ${record} AS record`
const columns = columnsWith(operationRecord)

const byId = keyedStatement<OperationRecord, { projectId: string; id: string }>(
  'operation_record',
  `SELECT o.project_id AS "projectId", ${columns} FROM operations o WHERE o.id = ANY (:id::uuid[])`,
)

const listedById = keyedStatement<OperationRecord, { projectId: string; id: string }>(
  'operation_listed_record',
  `SELECT o.project_id AS "projectId", ${columnsWith(listedOperationRecord)} FROM operations o
   WHERE o.id = ANY (:id::uuid[])`,
)

/** Lists the operations among `ids` that have ended. */
export const findEndedOperations = statement<OperationRecord, { ids: string[] }>(
  'operation_ended',
  `SELECT ${columns} FROM operations o WHERE o.id = ANY (:ids::uuid[]) AND o.state <> 'IN_PROGRESS'`,
).allBy('ids')

/** Returns undefined for an operation on a type of resource that does not match the path. */
export async function findOperationRecord(
  db: Queryable,
  projectId: string,
  id: string,
  type: OperationResourceType | null,
  showsScripts: boolean,
): Promise<OperationRecord | undefined> {
  const found = await (showsScripts ? byId : listedById).one(db, { projectId, id })
  return type === null || found?.resource_type === type ? found : undefined
}
