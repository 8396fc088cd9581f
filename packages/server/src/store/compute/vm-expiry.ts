import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

const warnAheadS = 600

/** VMs whose time is up. */
export const expired = `SELECT id, project_id, on_expiry FROM vms v
   WHERE expires_at <= slipway_now() AND deleted_at IS NULL
     AND CASE WHEN on_expiry = 'delete' AND NOT is_protected THEN state <> 'STATE_DELETING'
           ELSE state IN ('STATE_RUNNING', 'STATE_CRASHED')
             AND (SELECT q.operation_id FROM operation_queue q WHERE q.resource_id = v.id LIMIT 1) IS NULL
         END
   ORDER BY expires_at`

/** VMs whose time is nearly up, and whose owners were not warned. */
export const expiring = `SELECT id FROM vms
   WHERE expires_at <= slipway_now() + interval '${warnAheadS} seconds' AND expires_at > slipway_now()
     AND expiry_warned_at IS NULL AND deleted_at IS NULL AND state <> 'STATE_DELETING'
     AND (on_expiry = 'delete' AND NOT is_protected OR state <> 'STATE_SHUTOFF')`

const dueToExpire = statement<
  { id: string; project_id: string; on_expiry: 'stop' | 'delete' },
  { most: number }
>('vm_expired', `${expired} LIMIT :most`)

// Its owner may have given it more time since it was found.
const lockExpired = statement<{ id: string }, { id: string }>(
  'vm_lock_expired',
  'SELECT id FROM vms WHERE id = :id AND expires_at <= slipway_now() AND deleted_at IS NULL FOR UPDATE',
)

const dueToWarn = statement<{ id: string }, { most: number }>('vm_expiring_soon', `${expiring} LIMIT :most`)

const warned = statement<{ id: string }, { id: string }>(
  'vm_warned',
  'UPDATE vms SET expiry_warned_at = slipway_now() WHERE id = :id AND expiry_warned_at IS NULL RETURNING id',
)

export const listExpiredVms = (db: Queryable, most: number) => dueToExpire.all(db, { most })
export const lockExpiredVm = (tx: Tx, id: string) => lockExpired.one(tx, { id })
export const listVmsToWarn = (db: Queryable, most: number) => dueToWarn.all(db, { most })
export const markWarned = (tx: Tx, id: string) => warned.one(tx, { id })
