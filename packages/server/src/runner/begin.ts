import type { Queryable, Tx } from '../postgres/database.ts'
import { gatheredChange } from '../postgres/gathered.ts'
import { withSharedReads } from '../postgres/keyed.ts'
import { insertOperations, type NewOperation } from '../store/compute/operation-changes.ts'
import type { BegunOperation, OperationRow } from '../store/compute/operation-row.ts'
import { reserveSlot } from './slots.ts'

export interface Beginning extends NewOperation {
  /** Reads what the first step needs, together with the commit. Only used if the operation begins in this process. */
  readAhead?: (db: Queryable) => Promise<unknown>
}

/**
 * Writes the operation and the event of its start. If the worker of this process has a free slot, it begins the operation
 * after the commit; otherwise all workers are signalled.
 */
export const writeOperation: (tx: Tx, beginning: Beginning) => Promise<OperationRow> =
  gatheredChange(writeOperations)

/** Writes an operation with a known start time together with the commit. */
export async function writeOperationAtCommit(
  tx: Tx,
  beginning: Beginning & { startedAt: Date },
): Promise<BegunOperation> {
  tx.signal('events')
  await tx.enqueue(writeOperations, beginning)
  const { id, name, resourceType, resourceId, request, startedAt } = beginning
  return {
    ...{ id, name, resource_type: resourceType, resource_id: resourceId },
    ...{ request: request as OperationRow['request'], state: 'IN_PROGRESS', result: null },
    ...{ started_at: startedAt, completed_at: null },
  }
}

async function writeOperations(tx: Tx, beginnings: Beginning[]): Promise<OperationRow[]> {
  const slots = beginnings.map(({ projectId, location }) => reserveSlot(tx, projectId, location))
  const ahead = readAhead(
    tx,
    beginnings.map(({ readAhead }, at) => (slots[at] ? readAhead : undefined)),
  )
  const rows = await insertOperations(
    tx,
    beginnings.map(({ readAhead: _, ...operation }, at) => ({
      ...operation,
      ...(slots[at] && { lease: slots[at].lease }),
    })),
  )
  for (const [at, row] of rows.entries())
    slots[at]?.fill({ ...row, was_held: false, is_cancelled: false, ...ahead[at] })
  return rows
}

/** Reads of the same kind share a statement. */
function readAhead(tx: Tx, reads: Beginning['readAhead'][]): { ahead?: Promise<unknown> }[] {
  if (!reads.some((read) => read)) return reads.map(() => ({}))
  const all = tx.readAhead((db) => {
    const shared = withSharedReads(db)
    return Promise.all(reads.map((read) => read?.(shared)))
  })
  return reads.map((read, at) => (read ? { ahead: all.then((found) => found?.[at]) } : {}))
}
