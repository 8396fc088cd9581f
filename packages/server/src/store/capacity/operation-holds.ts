import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

// The transaction has locked the host, and fails if a GPU is neither free nor held for `heldFor`.
const hold = statement<never, { operationId: string; gpuIds: string[]; heldFor: string | null }>(
  'operation_hold',
  `WITH held AS (
     UPDATE gpus SET state = 'held', held_for = :operationId, held_kind = 'operation'
     WHERE id = ANY (:gpuIds::uuid[]) AND (state = 'free' OR state = 'held' AND held_for = :heldFor) RETURNING id)
   SELECT assert_or_abort(count(*) = cardinality(:gpuIds::uuid[]), 'a GPU is no longer free') FROM held`,
)
/** Holds GPUs for an operation. The GPUs are free, or held for a request or reservation. */
export const holdForOperation = (
  tx: Tx,
  operationId: string,
  { gpuIds, heldFor }: { gpuIds: string[]; heldFor?: string },
) => hold.run(tx, { operationId, gpuIds, heldFor: heldFor ?? null })

/**
 * Gives the GPUs that are held for an operation to its VM. They stay part of the reservation that the VM uses,
 * if any.
 */
export const claimHeld = statement<
  never,
  { operationId: string; vmId: string; reservationId: string | null },
  Tx
>(
  'operation_hold_claim',
  `UPDATE gpus SET state = 'claimed', vm_id = :vmId, held_for = :reservationId,
     held_kind = CASE WHEN :reservationId::uuid IS NOT NULL THEN 'reservation' END
   WHERE held_for = :operationId AND held_kind = 'operation' AND state = 'held'`,
).run

/** Operations that have ended and still hold GPUs, because they were cancelled or abandoned. */
export const endedHolders = `SELECT g.held_for AS id FROM gpus g
   WHERE g.held_kind = 'operation'
     AND (SELECT o.state FROM operations o WHERE o.id = g.held_for) IS DISTINCT FROM 'IN_PROGRESS'
   ORDER BY g.held_for`

export const listEndedHolders = statement<{ id: string }>(
  'operation_hold_ended',
  `SELECT DISTINCT id FROM (${endedHolders}) g`,
).all
