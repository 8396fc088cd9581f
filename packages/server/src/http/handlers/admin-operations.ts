import { requireFound } from '../../domain/failure.ts'
import { stepNames } from '../../operations/index.ts'
import { abandonStuck, retryStuck } from '../../operations/stuck.ts'
import type { Queryable } from '../../postgres/database.ts'
import { time } from '../../postgres/time.ts'
import type { OperationRow } from '../../store/compute/operation-row.ts'
import { operationView } from '../../store/compute/operation-view.ts'
import { findOperationWithSchedule, listAllOperations } from '../../store/compute/operations.ts'
import { withResourceNames } from '../../store/compute/resource-names.ts'
import type { Handlers } from '../context.ts'
import { pageById } from '../pages.ts'
import { stepViews } from './operations.ts'

/**
 * Shows digests instead of the scripts of a VM: scripts often contain secrets of the tenant, and operators do not
 * need them.
 */
const adminOperationView = (row: OperationRow & { resource_name: string }) => ({
  ...operationView({ ...row, request: row.listed_request ?? row.request }),
  project_id: row.project_id,
  resource_name: row.resource_name,
  is_stuck: row.is_stuck,
  step: row.state === 'IN_PROGRESS' ? (stepNames.get(row.kind)?.[row.step] ?? '') : '',
  attempts: row.attempts,
  error: row.last_error,
})

const namedView = async (db: Queryable, row: OperationRow) =>
  adminOperationView((await withResourceNames(db, [row]))[0]!)

export const adminOperationHandlers = {
  adminOperationList(context) {
    const { tx, query } = context
    const filter = {
      isStuck: query.stuck ?? null,
      state: query.state ?? null,
      resourceId: query.resource_id ?? null,
    }
    return pageById(
      context,
      async (beforeId, limit) =>
        withResourceNames(tx, await listAllOperations(tx, { ...filter, beforeId, limit })),
      adminOperationView,
    )
  },

  async adminOperationGet({ tx, params }) {
    const row = requireFound('operation', await findOperationWithSchedule(tx, params.operation_id))
    return {
      ...(await namedView(tx, row)),
      next_attempt_at: time(row.next_attempt_at),
      steps: stepViews(row),
    }
  },

  adminOperationRetry: async ({ tx, by, params }) =>
    namedView(tx, await retryStuck(tx, by, params.operation_id)),

  adminOperationAbandon: async ({ tx, by, params }) =>
    namedView(tx, await abandonStuck(tx, by, params.operation_id)),
} satisfies Partial<Handlers>
