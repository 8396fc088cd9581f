import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export const warnAheadS = 600

/**
 * VMs whose TTL has expired and that can be deleted or stopped now. A protected VM is stopped instead of
 * deleted. A VM is not stopped while an operation on it is in progress.
 */
export const expired = `SELECT id, project_id, on_expiry FROM vms v
   WHERE expires_at <= slipway_now() AND deleted_at IS NULL
     AND CASE WHEN on_expiry = 'delete' AND NOT is_protected THEN state <> 'STATE_DELETING'
           ELSE state IN ('STATE_RUNNING', 'STATE_CRASHED')
             AND (SELECT q.operation_id FROM operation_queue q WHERE q.resource_id = v.id LIMIT 1) IS NULL
         END
   ORDER BY expires_at`

/** VMs with a TTL that expires soon, for which no warning was sent. */
export const expiring = `SELECT id FROM vms
   WHERE expires_at <= slipway_now() + interval '${warnAheadS} seconds' AND expires_at > slipway_now()
     AND expiry_warned_at IS NULL AND deleted_at IS NULL AND state <> 'STATE_DELETING'
     AND (on_expiry = 'delete' AND NOT is_protected OR state <> 'STATE_SHUTOFF')`

export const listExpiredVms = statement<
  { id: string; project_id: string; on_expiry: 'stop' | 'delete' },
  { limit: number }
>('vm_expired', `${expired} LIMIT :limit`).allBy('limit')

/** Returns undefined if the TTL was extended after the VM was listed. */
export const lockExpiredVm = statement<{ id: string }, { id: string }, Tx>(
  'vm_lock_expired',
  'SELECT id FROM vms WHERE id = :id AND expires_at <= slipway_now() AND deleted_at IS NULL FOR UPDATE',
).oneBy('id')

export const listVmsToWarn = statement<{ id: string }, { limit: number }>(
  'vm_expiring_soon',
  `${expiring} LIMIT :limit`,
).allBy('limit')

export const markWarned = statement<{ id: string }, { id: string }, Tx>(
  'vm_warned',
  'UPDATE vms SET expiry_warned_at = slipway_now() WHERE id = :id AND expiry_warned_at IS NULL RETURNING id',
).oneBy('id')
