import type { FaultSource, GpuFault, VmHealth } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** A GPU of a VM. Lists are in the order in which the guest sees the GPUs. */
export interface VmGpu {
  id: string
  host_id: string
  isLost: boolean
}

export const listGpusOfVm = statement<VmGpu, { vmId: string }>(
  'gpu_list_of_vm',
  `SELECT id, host_id, lost_at IS NOT NULL AS "isLost" FROM gpus WHERE vm_id = :vmId ORDER BY pci_address`,
).allBy('vmId')

interface NewFault {
  gpuId: string
  vmId: string | null
  xid: number
  source: FaultSource
  at: string
  isSuspect: boolean
}

// A fault that is already recorded changes nothing. The caller must have locked the GPU's host in this
// transaction.
const addFault = statement<{ id: number }, NewFault>(
  'gpu_fault_insert',
  `WITH made AS (
     INSERT INTO gpu_faults (gpu_id, vm_id, xid, source, at) VALUES (:gpuId, :vmId, :xid, :source, :at)
     ON CONFLICT DO NOTHING RETURNING gpu_id)
   UPDATE gpus g SET fault_count = fault_count + 1,
     suspect_since = CASE WHEN :isSuspect THEN coalesce(g.suspect_since, slipway_now()) ELSE g.suspect_since END
   FROM made WHERE g.id = made.gpu_id RETURNING g.id`,
)
/** Returns whether the fault is new. */
export const recordFault = async (tx: Tx, fault: NewFault): Promise<boolean> =>
  (await addFault.one(tx, fault)) !== undefined

/**
 * Marks a GPU as suspect without recording a fault. The caller must have locked the GPU's host in this
 * transaction.
 */
export const markSuspect = statement<never, { gpuId: string }, Tx>(
  'gpu_mark_suspect',
  `UPDATE gpus SET suspect_since = slipway_now() WHERE id = :gpuId AND suspect_since IS NULL`,
).runBy('gpuId')

/** The faults of a GPU in the last 24 hours, and how often its VM was reset in that time. */
export const readRecentFaults = statement<
  { guest_faults: number; xids_before_start: number[]; resets: number },
  { gpuId: string; vmId: string }
>(
  'gpu_fault_recent',
  `SELECT (SELECT count(*) FROM gpu_faults f WHERE f.gpu_id = :gpuId AND f.source = 'guest' AND f.at > t.now - interval '1 day')::integer
            AS guest_faults,
          ARRAY(SELECT f.xid FROM gpu_faults f
                WHERE f.gpu_id = :gpuId AND f.vm_id = :vmId AND f.at > t.now - interval '1 day'
                  AND f.at < (SELECT started_at FROM vms WHERE id = :vmId)) AS xids_before_start,
          (SELECT count(*) FROM operations o
           WHERE o.resource_id = :vmId AND o.kind = 'vm-reset' AND o.state = 'SUCCEEDED'
             AND o.started_at > t.now - interval '1 day')::integer AS resets
   FROM moment t`,
).oneBy('gpuId', 'vmId')

/**
 * Lists faults that hosts report and that are not recorded yet. Skips GPUs whose VM is being created or
 * started; a later run finds their faults.
 */
export const listNewHostFaults = statement<
  { gpu_id: string; host_id: string; vm_id: string | null; xid: number; at: Date },
  { location: string }
>(
  'gpu_fault_new',
  `SELECT g.id AS gpu_id, g.host_id, g.vm_id, f.xid, f.at
   FROM gpus g JOIN hosts h ON h.id = g.host_id AND h.location = :location
   CROSS JOIN LATERAL (
     SELECT (x ->> 'xid')::integer AS xid, (x ->> 'at')::timestamptz AS at FROM jsonb_array_elements(g.host_xids) x
     UNION ALL SELECT 0, g.lost_at WHERE g.lost_at IS NOT NULL AND g.host_xids IS NULL) f
   WHERE (g.lost_at IS NOT NULL OR g.host_xids IS NOT NULL)
     AND NOT EXISTS (SELECT FROM gpu_faults k WHERE k.gpu_id = g.id AND k.xid = f.xid AND k.at = f.at)
     AND NOT EXISTS (SELECT FROM vms v WHERE v.id = g.vm_id AND v.state IN ('STATE_CREATING', 'STATE_STARTING'))
   ORDER BY g.id, f.at`,
).allBy('location')

/** A VM that is degraded or unhealthy because of its GPUs. */
interface FaultyVm {
  id: string
  health: VmHealth
}

export const listFaultyVms = statement<FaultyVm, { location: string }>(
  'vm_sick_list',
  `SELECT id, health FROM vms WHERE location = :location AND health IS NOT NULL AND deleted_at IS NULL`,
).allBy('location')

interface XidPosition {
  vm_id: string
  boot: string
  position: number
}

/** Lists how far the errors of these guests have been read. */
export const listXidPositions = statement<XidPosition, { vmIds: string[] }>(
  'vm_xid_positions',
  `SELECT vm_id, xid_boot AS boot, xid_position AS position FROM vm_guests WHERE vm_id = ANY (:vmIds::uuid[])`,
).allBy('vmIds')

export const setXidPosition = statement<never, { vmId: string; boot: string; position: number }, Tx>(
  'vm_xid_position',
  `INSERT INTO vm_guests (vm_id, xid_boot, xid_position) VALUES (:vmId, :boot, :position)
   ON CONFLICT (vm_id) DO UPDATE SET xid_boot = excluded.xid_boot, xid_position = excluded.xid_position`,
).runBy('vmId', 'boot', 'position')

export const setVmHealth = statement<never, { id: string; health: string | null }, Tx>(
  'vm_set_health',
  'UPDATE vms SET health = :health::jsonb, updated_at = slipway_now() WHERE id = :id',
).runBy('id', 'health')

export const setOnGpuFault = statement<never, { id: string; policy: string }, Tx>(
  'vm_set_on_gpu_fault',
  'UPDATE vms SET on_gpu_fault = :policy, updated_at = slipway_now() WHERE id = :id',
).runBy('id', 'policy')

/**
 * Records the time from which the VM is not billed, or null when it is billed again. The caller changes the
 * meter.
 */
export const setBillingPaused = statement<never, { id: string; at: Date | null }, Tx>(
  'vm_set_billing_paused',
  'UPDATE vms SET billing_paused_at = :at, updated_at = slipway_now() WHERE id = :id',
).runBy('id', 'at')

/**
 * Lists VMs whose billing pause may end: it has lasted at least an hour, or the VM no longer has a lost GPU.
 */
export const listPausedVms = statement<{ id: string }, { location: string }>(
  'vm_paused_list',
  `SELECT v.id FROM vms v CROSS JOIN moment t
   WHERE v.location = :location AND v.billing_paused_at IS NOT NULL AND v.deleted_at IS NULL
     AND (v.billing_paused_at <= t.now - interval '1 hour'
          OR NOT EXISTS (SELECT FROM gpus g WHERE g.vm_id = v.id AND g.lost_at IS NOT NULL))`,
).allBy('location')

/** An unhealthy VM whose tenant wants it to be replaced. */
export interface ReplaceableVm {
  id: string
  organization_id: string
}

const isUnhealthy = `v.health IS NOT NULL AND v.health ->> 'status' = 'unhealthy' AND v.deleted_at IS NULL`
export const listReplaceableVms = statement<ReplaceableVm, { location: string }>(
  'vm_replaceable_list',
  `SELECT v.id, p.organization_id FROM vms v JOIN projects p ON p.id = v.project_id
   WHERE v.location = :location AND ${isUnhealthy} AND v.on_gpu_fault = 'replace'
     AND v.state IN ('STATE_RUNNING', 'STATE_CRASHED')
   ORDER BY v.health ->> 'since', v.id LIMIT 100`,
).allBy('location')

/**
 * If a location has at least this many unhealthy VMs, and more than this percentage of its VMs are unhealthy,
 * they probably have a common cause. Replacing them would only move the problem.
 */
export const commonCause = { vms: 3, percent: 10 }

/**
 * The SQL condition for a location whose unhealthy VMs probably have a common cause. To save work, the location's VMs
 * are counted only if at least `commonCause.vms` of them are unhealthy.
 */
export const hasCommonCause = (location: string) => `
  (SELECT CASE WHEN count(*) < ${commonCause.vms} THEN false ELSE count(*) * 100 > ${commonCause.percent} * (
     SELECT count(*) FROM vms a WHERE a.location = ${location} AND a.deleted_at IS NULL
       AND a.state NOT IN ('STATE_SHUTOFF', 'STATE_DELETING')) END
   FROM vms v WHERE v.location = ${location} AND ${isUnhealthy})`

const massFault = statement<{ is_mass: boolean }, { location: string }>(
  'vm_mass_fault',
  `SELECT ${hasCommonCause(':location')} AS is_mass`,
)
export const isMassFault = async (db: Queryable, location: string): Promise<boolean> =>
  (await massFault.one(db, { location }))!.is_mass

const automatic = statement<{ count: number }, { vmId: string }>(
  'vm_replacements',
  `SELECT count(*)::integer AS count FROM operations
   WHERE resource_id = :vmId AND kind = 'vm-replace' AND actor = 'system' AND started_at > slipway_now() - interval '1 day'`,
)
/** Counts how often the service has replaced a VM in the last 24 hours. */
export const countReplacements = async (tx: Tx, vmId: string): Promise<number> =>
  (await automatic.one(tx, { vmId }))!.count

interface CheckedGpu {
  id: string
  passed: boolean
  reasons: string[]
}

// A GPU that fails the check is held back until an operator requests another check. The caller must have
// locked the GPU's host in this transaction.
const writeCheck = statement<
  { id: string; pci_address: string; was_suspect: boolean },
  { id: string; passed: boolean; reasons: string }
>(
  'gpu_check_write',
  `WITH before AS MATERIALIZED (SELECT id, suspect_since IS NOT NULL AS was_suspect FROM gpus WHERE id = :id)
   UPDATE gpus g SET checked_at = slipway_now(), has_passed_check = :passed, check_reasons = :reasons::jsonb,
     is_held_back = g.is_held_back OR NOT :passed,
     suspect_since = CASE WHEN :passed THEN NULL ELSE coalesce(g.suspect_since, slipway_now()) END
   FROM before WHERE g.id = before.id AND g.state = 'quarantined' AND NOT g.is_held_back
   RETURNING g.id, g.pci_address, before.was_suspect`,
)
export const recordCheck = (tx: Tx, { id, passed, reasons }: CheckedGpu) =>
  writeCheck.one(tx, { id, passed, reasons: JSON.stringify(reasons) })

/** Puts a GPU into quarantine, so that it is checked at its host's next report. */
export const markForCheck = statement<{ id: string }, { gpuId: string }, Tx>(
  'gpu_ask_for_check',
  `UPDATE gpus SET state = 'quarantined', is_held_back = false, quarantined_at = slipway_now(),
     suspect_since = coalesce(suspect_since, slipway_now())
   WHERE id = :gpuId AND state IN ('free', 'quarantined') RETURNING id`,
).oneBy('gpuId')

const faults = statement<
  GpuFault & { id: string },
  { gpuId: string; beforeId: string | null; limit: number }
>(
  'gpu_fault_list',
  `SELECT f.id::text AS id, f.xid, f.source, coalesce(f.vm_id::text, '') AS vm_id,
          to_char(f.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at
   FROM gpu_faults f WHERE f.gpu_id = :gpuId AND f.id < coalesce(:beforeId::bigint, 9223372036854775807) ORDER BY f.id DESC LIMIT :limit`,
)
export const listGpuFaults = (db: Queryable, gpuId: string, beforeId: string | null, limit: number) =>
  faults.all(db, { gpuId, beforeId, limit })

/** Faults are kept for 400 days. */
export const pruneGpuFaults = statement<never, { limit: number }>(
  'gpu_fault_prune',
  `DELETE FROM gpu_faults WHERE id IN (
     SELECT id FROM gpu_faults WHERE at < slipway_now() - interval '400 days' ORDER BY at LIMIT :limit)`,
).runBy('limit')
