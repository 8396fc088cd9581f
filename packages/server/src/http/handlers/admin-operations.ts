import { stepNames } from '../../operations/index.ts'
import { abandonStuck, retryStuck } from '../../operations/stuck.ts'
import { listAllOperations, type OperationRow, operationView } from '../../store/compute/operations.ts'
import { findResourceNames } from '../../store/compute/resource-names.ts'
import type { Queryable } from '../../store/database.ts'
import type { Handlers } from '../context.ts'
import { pageById } from '../pages.ts'

type NamedOperation = OperationRow & { resource_name: string }

async function withNames(db: Queryable, rows: OperationRow[]): Promise<NamedOperation[]> {
  const names = await findResourceNames(
    db,
    rows.map(({ resource_id }) => resource_id),
  )
  return rows.map((row) => ({ ...row, resource_name: names.get(row.resource_id) ?? '' }))
}

const adminOperationView = (row: NamedOperation) => ({
  ...operationView(row),
  project_id: row.project_id,
  resource_name: row.resource_name,
  is_stuck: row.is_stuck,
  step: row.state === 'IN_PROGRESS' ? (stepNames.get(row.kind)?.[row.step] ?? '') : '',
  attempts: row.attempts,
  error: row.last_error,
})

const namedView = async (db: Queryable, row: OperationRow) =>
  adminOperationView((await withNames(db, [row]))[0]!)

export const adminOperationHandlers: Handlers<
  'adminOperationList' | 'adminOperationRetry' | 'adminOperationAbandon'
> = {
  adminOperationList(context) {
    const { tx, query } = context
    const filter = { isStuck: query.stuck ?? null, state: query.state ?? null }
    return pageById(
      context,
      async (beforeId, limit) => withNames(tx, await listAllOperations(tx, { ...filter, beforeId, limit })),
      adminOperationView,
    )
  },

  adminOperationRetry: async ({ tx, by, params }) =>
    namedView(tx, await retryStuck(tx, by, params.operation_id)),

  adminOperationAbandon: async ({ tx, by, params }) =>
    namedView(tx, await abandonStuck(tx, by, params.operation_id)),
}
