import { Failure, notFound } from '../../domain/failure.ts'
import { stepNames } from '../../operations/index.ts'
import {
  endOperation,
  findAnyOperation,
  listAllOperations,
  type OperationRow,
  operationView,
  retryStuckOperation,
  takeStuckOperation,
} from '../../store/compute/operations.ts'
import type { Context, Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

const view = (row: OperationRow) => ({
  ...operationView(row),
  project_id: row.project_id,
  is_stuck: row.is_stuck,
  step: row.state === 'IN_PROGRESS' ? (stepNames.get(row.kind)?.[row.step] ?? '') : '',
  attempts: row.attempts,
  error: row.last_error,
})

type ById = 'adminOperationRetry' | 'adminOperationAbandon'

/** The stuck operation, changed by `change`; says why not if it is not stuck. */
async function onStuck(
  context: Context<ById>,
  type: string,
  change: (row: string) => Promise<OperationRow | undefined>,
): Promise<OperationRow> {
  const known = await findAnyOperation(context.tx, context.params.operation_id)
  if (!known) throw notFound('operation')
  const row = await change(known.id)
  if (!row) throw new Failure('conflict', `The operation is not stuck: it is ${known.state}.`)
  await context.audit({
    type,
    resourceType: row.resource_type,
    resourceId: row.resource_id,
    projectId: row.project_id,
    data: { operation_id: row.id },
  })
  context.tx.signal('operations')
  return row
}

export const adminOperationHandlers: Handlers<'adminOperationList' | ById> = {
  async adminOperationList({ tx, query }) {
    const limit = pageLimit(query)
    const rows = await listAllOperations(tx, {
      beforeId: readPageToken('admin operations', query.page_token),
      isStuck: query.stuck ?? null,
      state: query.state ?? null,
      limit: limit + 1,
    })
    return toPage('admin operations', rows, limit, (row) => row.id, view)
  },

  async adminOperationRetry(context) {
    return view(await onStuck(context, 'operation.retried', (id) => retryStuckOperation(context.tx, id)))
  },

  async adminOperationAbandon(context) {
    const { tx } = context
    const row = await onStuck(context, 'operation.abandoned', async (id) => {
      const taken = await takeStuckOperation(tx, id)
      if (!taken) return undefined
      const result = taken.failure ?? { code: 'engine_error', message: 'Given up by an operator.' }
      await endOperation(tx, { id, token: null }, 'FAILED', result, taken.step_log)
      return findAnyOperation(tx, id)
    })
    return view(row)
  },
}
