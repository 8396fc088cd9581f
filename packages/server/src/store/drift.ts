import type { VmState } from '@slipway/contract'
import { type Queryable, statement, type Tx } from './database.ts'

export interface KnownVm {
  id: string
  state: VmState
  host: string
  firewall_applied: number
  is_hidden: boolean
}

// What should be on these hosts, as far as nobody is working on it.
const onHosts = statement<KnownVm, [string, string[]]>(
  'drift_vms_on_hosts',
  `SELECT v.id, v.state, h.name AS host, v.firewall_applied, v.deleted_at IS NOT NULL AS is_hidden
   FROM vms v JOIN hosts h ON h.id = v.host_id
   WHERE h.location = $1 AND h.name = ANY ($2)
     AND NOT EXISTS (SELECT FROM operations o WHERE o.resource_id = v.id AND o.state = 'IN_PROGRESS')`,
)

const onLostHosts = statement<{ id: string }, [string[]]>(
  'drift_vms_on_lost_hosts',
  `SELECT v.id FROM vms v JOIN hosts h ON h.id = v.host_id
   WHERE h.state = 'down' AND v.state = ANY ($1) AND v.deleted_at IS NULL
     AND NOT EXISTS (SELECT FROM operations o WHERE o.resource_id = v.id AND o.state = 'IN_PROGRESS')`,
)

// Which of these ids no row knows, and what is known of those that once were ours.
const strangers = statement<{ id: string; newest_generation: number | null }, [string[]]>(
  'drift_strangers',
  `SELECT s.id, (SELECT max(o.generation) FROM operations o WHERE o.resource_id = s.id) AS newest_generation
   FROM unnest($1::uuid[]) s (id)
   WHERE NOT EXISTS (SELECT FROM vms v WHERE v.id = s.id) AND NOT EXISTS (SELECT FROM disks d WHERE d.id = s.id)`,
)

const lockUnchanged = statement<{ id: string }, [string, number]>(
  'drift_lock_unchanged',
  `SELECT v.id FROM vms v WHERE v.id = $1 AND v.generation = $2
     AND NOT EXISTS (SELECT FROM operations o WHERE o.resource_id = v.id AND o.state = 'IN_PROGRESS') FOR UPDATE`,
)

const dueToExpire = statement<{ id: string; project_id: string; on_expiry: 'stop' | 'delete' }, [number]>(
  'drift_expired',
  `SELECT id, project_id, on_expiry FROM vms v
   WHERE expires_at <= slipway_now() AND deleted_at IS NULL
     AND CASE on_expiry
           WHEN 'delete' THEN state <> 'STATE_DELETING'
           ELSE state IN ('STATE_RUNNING', 'STATE_CRASHED')
             AND NOT EXISTS (SELECT FROM operations o WHERE o.resource_id = v.id AND o.state = 'IN_PROGRESS')
         END
   ORDER BY expires_at LIMIT $1`,
)

// Its owner may have given it more time since it was found.
const lockExpired = statement<{ id: string }, [string]>(
  'drift_lock_expired',
  'SELECT id FROM vms WHERE id = $1 AND expires_at <= slipway_now() AND deleted_at IS NULL FOR UPDATE',
)

const dueToWarn = statement<{ id: string }, [number, number]>(
  'drift_expiring_soon',
  `SELECT id FROM vms
   WHERE expires_at <= slipway_now() + $1 * interval '1 second' AND expires_at > slipway_now()
     AND expiry_warned_at IS NULL AND deleted_at IS NULL AND state <> 'STATE_DELETING'
     AND (on_expiry = 'delete' OR state <> 'STATE_SHUTOFF') LIMIT $2`,
)

const warned = statement<{ id: string }, [string]>(
  'drift_warned',
  'UPDATE vms SET expiry_warned_at = slipway_now() WHERE id = $1 AND expiry_warned_at IS NULL RETURNING id',
)

export const listKnownVms = (db: Queryable, location: string, hosts: string[]) =>
  onHosts.all(db, location, hosts)
export const listVmsOnLostHosts = (db: Queryable, states: VmState[]) => onLostHosts.all(db, states)
export const findStrangers = (db: Queryable, ids: string[]) => strangers.all(db, ids)
/** Locks the VM unless an operation has touched it since it had this generation. */
export const lockUnchangedVm = (tx: Tx, id: string, generation: number) =>
  lockUnchanged.one(tx, id, generation)
export const listExpiredVms = (db: Queryable, most: number) => dueToExpire.all(db, most)
export const lockExpiredVm = (tx: Tx, id: string) => lockExpired.one(tx, id)
export const listVmsToWarn = (db: Queryable, aheadS: number, most: number) => dueToWarn.all(db, aheadS, most)
export const markWarned = (tx: Tx, id: string) => warned.one(tx, id)

const pruneTokens = statement(
  'prune_tokens',
  `WITH a AS (DELETE FROM access_tokens WHERE expires_at < slipway_now()),
        r AS (DELETE FROM refresh_tokens WHERE expires_at < slipway_now()),
        f AS (DELETE FROM password_failures WHERE failed_at < slipway_now() - interval '1 hour'),
        c AS (DELETE FROM one_time_codes WHERE expires_at < slipway_now() - interval '90 days')
   DELETE FROM token_families t
   WHERE (t.revoked_at IS NOT NULL AND t.revoked_at < slipway_now() - interval '1 day')
      OR (t.created_at < slipway_now() - interval '31 days'
          AND NOT EXISTS (SELECT FROM refresh_tokens r WHERE r.family_id = t.id AND r.expires_at >= slipway_now()))`,
)

const pruneKeys = statement(
  'prune_idempotency_keys',
  `DELETE FROM idempotency_keys WHERE created_at < slipway_now() - interval '24 hours'`,
)

// Streams learn from pruned_position that what they ask for is gone.
const pruneEvents = statement<never, [number]>(
  'prune_events',
  `WITH old AS (SELECT seq, position FROM events
                WHERE created_at < slipway_now() - interval '90 days' AND position IS NOT NULL ORDER BY position LIMIT $1),
        gone AS (DELETE FROM events WHERE seq IN (SELECT seq FROM old))
   UPDATE event_counter SET pruned_position = greatest(pruned_position, (SELECT max(position) FROM old))
   WHERE EXISTS (SELECT FROM old)`,
)

export async function pruneExpired(db: Queryable, most: number): Promise<void> {
  await pruneTokens.run(db)
  await pruneKeys.run(db)
  await pruneEvents.run(db, most)
}
