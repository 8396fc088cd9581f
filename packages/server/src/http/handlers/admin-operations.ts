import { stepNames } from '../../operations/index.ts'
import { abandonStuck, retryStuck } from '../../operations/stuck.ts'
import { listAllOperations, type OperationRow, operationView } from '../../store/compute/operations.ts'
import type { Handlers } from '../context.ts'
import { pageById } from '../pages.ts'

const adminOperationView = (row: OperationRow) => ({
  ...operationView(row),
  project_id: row.project_id,
  is_stuck: row.is_stuck,
  step: row.state === 'IN_PROGRESS' ? (stepNames.get(row.kind)?.[row.step] ?? '') : '',
  attempts: row.attempts,
  error: row.last_error,
})

export const adminOperationHandlers: Handlers<
  'adminOperationList' | 'adminOperationRetry' | 'adminOperationAbandon'
> = {
  adminOperationList(context) {
    const { tx, query } = context
    const filter = { isStuck: query.stuck ?? null, state: query.state ?? null }
    return pageById(
      context,
      (beforeId, limit) => listAllOperations(tx, { ...filter, beforeId, limit }),
      adminOperationView,
    )
  },

  adminOperationRetry: async ({ tx, by, params }) =>
    adminOperationView(await retryStuck(tx, by, params.operation_id)),

  adminOperationAbandon: async ({ tx, by, params }) =>
    adminOperationView(await abandonStuck(tx, by, params.operation_id)),
}
