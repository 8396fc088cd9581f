import type { IdlePolicy, Labels } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** A running VM with an idle policy. */
export interface WatchedVm {
  id: string
  project_id: string
  name: string
  labels: Labels
  gpu_count: number
  policy: IdlePolicy
  idle_since: Date | null
  stops_at: Date | null
  is_announced: boolean
  now: Date
  /** When the policy began to apply to this run of the VM. */
  watched_since: Date
}

// Values that were recorded before the VM's last start are ignored.
const since = 'greatest(v.idle_policy_at, v.started_at, v.created_at)'
const columns = `v.id, v.project_id, v.name, v.labels, v.gpu_count, v.idle_policy AS policy,
  CASE WHEN v.idle_since >= date_trunc('minute', ${since}) THEN v.idle_since END AS idle_since,
  CASE WHEN v.idle_stops_at >= ${since} THEN v.idle_stops_at END AS stops_at,
  coalesce(v.idle_told_at >= ${since}, false) AS is_announced, t.now, ${since} AS watched_since`
const isWatched = `v.idle_policy IS NOT NULL AND v.state = 'STATE_RUNNING' AND v.deleted_at IS NULL`

/** Lists the VMs of a location to which a policy currently applies. */
export const listWatchedVms = statement<WatchedVm, { location: string }>(
  'vm_idle_list',
  `SELECT ${columns} FROM vms v CROSS JOIN moment t WHERE v.location = :location AND ${isWatched}`,
).allBy('location')

/** Locks and returns a watched VM; undefined if the policy no longer applies. */
export const lockWatchedVm = statement<WatchedVm, { id: string }, Tx>(
  'vm_idle_lock',
  `SELECT ${columns} FROM vms v CROSS JOIN moment t WHERE v.id = :id AND ${isWatched} FOR UPDATE OF v`,
).oneBy('id')

export const setIdlePolicy = statement<never, { id: string; policy: string | null }, Tx>(
  'vm_idle_policy',
  `UPDATE vms SET idle_policy = :policy::jsonb, idle_policy_at = slipway_now(), updated_at = slipway_now(),
          idle_since = NULL, idle_stops_at = NULL, idle_told_at = NULL WHERE id = :id`,
).runBy('id', 'policy')

/** Clears everything that was recorded, because a sample shows that the VM is busy. */
export const markBusy = statement<never, { id: string }>(
  'vm_idle_busy',
  `UPDATE vms SET idle_since = NULL, idle_stops_at = NULL, idle_told_at = NULL
   WHERE id = :id AND num_nonnulls(idle_since, idle_stops_at, idle_told_at) > 0`,
).runBy('id')

export const markIdle = statement<never, { id: string }>(
  'vm_idle_begin',
  `UPDATE vms SET idle_since = date_trunc('minute', slipway_now()), idle_stops_at = NULL, idle_told_at = NULL WHERE id = :id`,
).runBy('id')

export const markIdleAnnounced = statement<never, { id: string; stopsAt: Date | null }, Tx>(
  'vm_idle_told',
  'UPDATE vms SET idle_told_at = slipway_now(), idle_stops_at = :stopsAt::timestamptz WHERE id = :id',
).runBy('id', 'stopsAt')

/** Counts the samples after `from` in which the guest reported GPUs. */
const reported = statement<{ count: number }, { id: string; from: Date }>(
  'vm_idle_samples',
  `SELECT ((SELECT count(*) FROM vm_samples s WHERE s.vm_id = :id AND s.at > :from AND json_array_length(s.data -> 'g') > 0)
         + (SELECT count(*) FROM vm_sample_chunks c, json_array_elements_text(c.data -> 't') e
            WHERE c.vm_id = :id AND c.step = 60 AND c.hour > :from::timestamptz - interval '1 hour'
              AND json_array_length(c.data -> 'g') > 0 AND to_timestamp(e::float8) > :from))::float8 AS count`,
)

export const countReportedSamples = async (tx: Tx, id: string, from: Date): Promise<number> =>
  (await reported.one(tx, { id, from }))!.count

const watchedLocations = statement<{ location: string }>(
  'dev_idle_locations',
  `SELECT DISTINCT v.location FROM vms v WHERE ${isWatched} OR v.health IS NOT NULL OR v.billing_paused_at IS NOT NULL`,
)

/** Lists the locations where samples matter: an idle policy applies to a VM, or a VM's GPU has a fault. */
export const listWatchedLocations = async (db: Queryable): Promise<string[]> =>
  (await watchedLocations.all(db)).map(({ location }) => location)
