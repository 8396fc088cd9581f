import type { Queryable, Tx } from '../postgres/database.ts'
import { gatheredChange } from '../postgres/gathered.ts'
import { withSharedReads } from '../postgres/keyed.ts'
import { insertOperations, type NewOperation } from '../store/compute/operation-changes.ts'
import type { BegunOperation, OperationRow } from '../store/compute/operation-row.ts'
import { reserveSlot, type Slot } from './slots.ts'

export interface AdmittedOperation extends NewOperation {
  /** Null if the service itself starts the operation; a worker then claims it. */
  organizationId: string | null
  /**
   * Reads what the first step needs, together with the commit. The result is used only if the operation
   * begins in this process.
   */
  prefetch?: ((db: Queryable) => Promise<unknown>) | undefined
}

/**
 * Writes the operation and its start event. If this process's worker has a free slot, it begins the operation
 * after the commit; otherwise all workers are signaled.
 */
export const writeOperation: (tx: Tx, operation: AdmittedOperation) => Promise<OperationRow> =
  gatheredChange(writeOperations)

/** Writes an operation with a known start time together with the commit. */
export async function writeOperationAtCommit(
  tx: Tx,
  operation: AdmittedOperation & { startedAt: Date },
): Promise<BegunOperation> {
  tx.signal('events')
  await tx.enqueue(writeOperations, operation)
  return {
    id: operation.id,
    name: operation.name,
    resource_type: operation.resourceType,
    resource_id: operation.resourceId,
    request: operation.request as OperationRow['request'],
    state: 'IN_PROGRESS',
    result: null,
    started_at: operation.startedAt,
    completed_at: null,
  }
}

async function writeOperations(tx: Tx, operations: AdmittedOperation[]): Promise<OperationRow[]> {
  const slots = operations.map(({ projectId, organizationId, location }) =>
    organizationId === null ? undefined : reserveSlot(tx, { projectId, organizationId }, location),
  )
  const prefetched = prefetchAll(tx, operations, slots)
  const rows = await insertOperations(
    tx,
    operations.map(({ prefetch: _p, organizationId: _o, ...operation }, index) => ({
      ...operation,
      lease: slots[index]?.lease,
    })),
  )
  for (const [index, row] of rows.entries())
    slots[index]?.fill({ ...row, was_held: false, is_cancelled: false, prefetched: prefetched[index] })
  return rows
}

/** Starts the reads of the operations that have a slot. Reads of the same kind share a statement. */
function prefetchAll(
  tx: Tx,
  operations: AdmittedOperation[],
  slots: (Slot | undefined)[],
): (Promise<unknown> | undefined)[] {
  const reads = operations.map(({ prefetch }, index) => (slots[index] ? prefetch : undefined))
  if (reads.every((read) => read === undefined)) return []
  const all = tx.readWithCommit((db) => {
    const shared = withSharedReads(db)
    return Promise.all(reads.map((read) => read?.(shared)))
  })
  return reads.map((read, index) => read && all.then((results) => results?.[index]))
}
