import type { Gpu, HostState, HostVm } from '@slipway/contract'
import { uuid } from '../../domain/ids.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { isBefore, statement } from '../../postgres/statement.ts'
import { emit } from '../events/events.ts'
import { markForCheck } from './gpu-health.ts'
import type { LocationRow } from './locations.ts'

export interface HostRow {
  id: string
  name: string
  location: string
  engine: LocationRow['engine']
  is_schedulable: boolean
  state: HostState
  capabilities: Record<string, unknown>
  reported_at: Date | null
  forgotten_at: Date | null
  draining_since: Date | null
  note: string
  note_at: Date | null
  note_by: string
  maintenance_at: Date | null
  maintenance_note: string
  vms_at_drain: number
  gpus: Gpu[]
  vms: HostVm[]
}

const isoTime = (value: string) => `to_char(${value} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

const gpuRecord = `jsonb_build_object('id', g.id, 'model', g.model, 'pci_address', g.pci_address,
  'numa_node', g.numa_node, 'state', g.state, 'vm_id', coalesce(g.vm_id::text, ''),
  'held_for', coalesce(g.held_for::text, ''), 'suspect', g.suspect_since IS NOT NULL, 'fault_count', g.fault_count,
  'last_fault', coalesce((SELECT jsonb_build_object('at', ${isoTime('f.at')}, 'xid', f.xid, 'source', f.source)
                          FROM gpu_faults f WHERE g.fault_count > 0 AND f.gpu_id = g.id ORDER BY f.id DESC LIMIT 1),
                         '{"at": "", "xid": 0, "source": ""}'),
  'last_check', jsonb_build_object('at', coalesce(${isoTime('g.checked_at')}, ''),
    'passed', coalesce(g.has_passed_check, false), 'reasons', g.check_reasons))`

// A stopped VM needs its host only if storage is local; otherwise it can start on another host.
export const livesOnHost = `v.host_id = h.id AND NOT (v.state = 'STATE_SHUTOFF' AND l.storage = 'shared')`

const vmView = `jsonb_build_object('id', v.id, 'name', v.name, 'state', v.state, 'project_id', p.id,
  'project_name', p.name, 'organization_name', o.name)`

// The newest host.draining event has the start of the drain and the number of VMs at that time.
const hostRecords = `SELECT h.id, h.name, h.location, l.engine, h.is_schedulable, h.state, h.capabilities, r.reported_at, h.forgotten_at,
    h.note, h.note_at, h.note_by, h.maintenance_at, h.maintenance_note,
    drain.created_at AS draining_since, coalesce(drain.vms, 0) AS vms_at_drain,
    coalesce((SELECT jsonb_agg(${gpuRecord} ORDER BY g.pci_address) FROM gpus g WHERE g.host_id = h.id), '[]') AS gpus,
    coalesce((SELECT jsonb_agg(${vmView} ORDER BY v.id)
              FROM vms v JOIN projects p ON p.id = v.project_id JOIN organizations o ON o.id = p.organization_id
              WHERE ${livesOnHost}), '[]') AS vms
  FROM hosts h JOIN locations l ON l.name = h.location LEFT JOIN host_reports r ON r.host_id = h.id
    LEFT JOIN LATERAL (SELECT e.created_at, (e.data ->> 'vms')::integer AS vms FROM events e
                       WHERE h.state = 'draining' AND e.resource_id = h.id::text AND e.type = 'host.draining'
                         AND e.project_id IS NULL
                       ORDER BY e.position DESC LIMIT 1) drain ON true`

export const listHosts = statement<HostRow, HostFilter>(
  'host_list',
  `${hostRecords}
   WHERE (:location::text IS NULL OR h.location = :location) AND (:state::text IS NULL OR h.state = :state)
     AND ${isBefore('h.id')}
   ORDER BY h.id DESC LIMIT :limit`,
).all

export const findHost = statement<HostRow, { id: string }>(
  'host_find',
  `${hostRecords} WHERE h.id = :id`,
).oneBy('id')

const insert = statement<{ id: string }, { id: string; location: string; name: string }>(
  'host_insert',
  `INSERT INTO hosts (id, location, name) VALUES (:id, :location, :name)
   ON CONFLICT (location, name) DO NOTHING RETURNING id`,
)

const setSchedulable = statement<never, { id: string; isSchedulable: boolean }>(
  'host_set_schedulable',
  `UPDATE hosts SET is_schedulable = :isSchedulable, is_draining = is_draining AND NOT :isSchedulable,
     state = CASE WHEN :isSchedulable AND state IN ('draining', 'drained') THEN 'up' ELSE state END
   WHERE id = :id`,
)

const cordoned = statement<{ name: string }, { location: string; names: string[] }>(
  'host_list_cordoned',
  `SELECT name FROM hosts WHERE location = :location AND name = ANY(:names) AND (is_draining OR NOT is_schedulable)`,
)

// Waits for placements in progress on this host. After the commit, all of them are visible and no new ones
// begin.
const drain = statement<never, { id: string }>(
  'host_drain',
  `UPDATE hosts SET is_draining = true, state = CASE state WHEN 'up' THEN 'draining' ELSE state END WHERE id = :id`,
)

const markDrained = statement<{ id: string; name: string; location: string }>(
  'host_settle_drained',
  `UPDATE hosts h SET state = 'drained' FROM locations l
   WHERE l.name = h.location AND h.state = 'draining' AND h.claimed_gpus = 0
     AND NOT EXISTS (SELECT FROM vms v WHERE ${livesOnHost})
   RETURNING h.id, h.name, h.location`,
)

/** Lists the projects with VMs on a host. */
export const listHostTenants = statement<
  { project_id: string; organization_id: string; vm_ids: string[] },
  { id: string }
>(
  'host_tenants',
  `SELECT v.project_id, p.organization_id, array_agg(v.id::text ORDER BY v.id) AS vm_ids
   FROM vms v JOIN projects p ON p.id = v.project_id
   WHERE v.host_id = :id AND v.deleted_at IS NULL GROUP BY v.project_id, p.organization_id`,
).allBy('id')

// Locks the host before checking whether it is empty, so that placements in progress have ended.
const lock = statement<{ id: string }, { id: string }>(
  'host_lock_by_id',
  'SELECT id FROM hosts WHERE id = :id FOR UPDATE',
)

const removeEmpty = statement<{ name: string }, { id: string }>(
  'host_remove_empty',
  `DELETE FROM hosts h WHERE id = :id AND claimed_gpus = 0 AND NOT EXISTS (SELECT FROM vms WHERE host_id = h.id)
     AND NOT EXISTS (SELECT FROM disks WHERE host_id = h.id) RETURNING name`,
)

const findGpuRecord = statement<{ record: Gpu; host_id: string }, { gpuId: string }>(
  'gpu_find',
  `SELECT ${gpuRecord} AS record, g.host_id FROM gpus g WHERE g.id = :gpuId`,
)
export async function findGpu(
  db: Queryable,
  gpuId: string,
): Promise<(Gpu & { host_id: string }) | undefined> {
  const found = await findGpuRecord.one(db, { gpuId })
  return found && { ...found.record, host_id: found.host_id }
}

const holdBack = statement<never, { gpuId: string }>(
  'gpu_hold_back',
  `UPDATE gpus SET state = 'quarantined', is_held_back = true, quarantined_at = coalesce(quarantined_at, slipway_now())
   WHERE id = :gpuId AND state IN ('free', 'quarantined')`,
)

const release = statement<never, { gpuId: string }>(
  'gpu_release',
  `UPDATE gpus SET state = 'free', is_held_back = false, quarantined_at = NULL, suspect_since = NULL
   WHERE id = :gpuId AND state IN ('free', 'quarantined')`,
)

/** Counts GPUs by location and family, without removed GPUs. `free` counts the GPUs that placement can use. */
export const countGpus = statement<FamilyCounts>(
  'fleet_counts',
  `SELECT h.location, h.family, count(*) AS total,
          count(*) FILTER (WHERE g.state = 'free' AND h.is_schedulable AND h.state = 'up') AS free,
          count(*) FILTER (WHERE g.state = 'free' AND NOT (h.is_schedulable AND h.state = 'up')) AS unavailable,
          count(*) FILTER (WHERE g.state = 'claimed') AS claimed,
          count(*) FILTER (WHERE g.state = 'quarantined') AS quarantined,
          count(*) FILTER (WHERE g.state = 'held') AS held
   FROM gpus g JOIN hosts h ON h.id = g.host_id WHERE g.state <> 'gone' GROUP BY h.location, h.family`,
).all

export interface HostFilter {
  location: string | null
  state: string | null
  beforeId: string | null
  limit: number
}

/**
 * The host is `down` until its first report. Returns its id, or undefined if the location already has a host of this
 * name.
 */
export async function insertHost(tx: Tx, location: string, name: string): Promise<string | undefined> {
  return (await insert.one(tx, { id: uuid(), location, name }))?.id
}

/** Making a host schedulable also ends its draining. Returns false if there is no such host. */
export const setHostSchedulable = async (tx: Tx, id: string, isSchedulable: boolean): Promise<boolean> =>
  (await setSchedulable.run(tx, { id, isSchedulable })) > 0

/** Returns which of these hosts an operator has cordoned or is draining. */
export const listCordonedHosts = async (
  db: Queryable,
  location: string,
  names: string[],
): Promise<Set<string>> => new Set((await cordoned.all(db, { location, names })).map(({ name }) => name))

/** From now on, the host gets no new VMs. Returns false if there is no such host. */
export const startDraining = async (tx: Tx, id: string): Promise<boolean> => (await drain.run(tx, { id })) > 0

/** Marks draining hosts as drained if they no longer have VMs. Returns the number of these hosts. */
export async function markDrainedHosts(tx: Tx): Promise<number> {
  const drained = await markDrained.all(tx)
  for (const { id, name, location } of drained)
    await emit(tx, { type: 'host.drained', resourceType: 'host', resourceId: id, data: { name, location } })
  return drained.length
}

/**
 * Locks the GPU's host, and marks the GPU for a check at the host's next report. `isMarked` is false if the
 * GPU is used or held.
 */
export async function requestGpuCheck(
  tx: Tx,
  gpuId: string,
): Promise<{ gpu: Gpu; isMarked: boolean } | undefined> {
  const known = await findGpu(tx, gpuId)
  if (!known) return undefined
  await lock.one(tx, { id: known.host_id })
  const isMarked = (await markForCheck(tx, gpuId)) !== undefined
  const { host_id, ...gpu } = (await findGpu(tx, gpuId))!
  return { gpu, isMarked }
}

/** Locks the host. Returns `in_use` while VMs or disks are on it. */
export async function removeHost(tx: Tx, id: string): Promise<'removed' | 'in_use' | 'missing'> {
  if (!(await lock.one(tx, { id }))) return 'missing'
  return (await removeEmpty.one(tx, { id })) ? 'removed' : 'in_use'
}

/**
 * Holds a GPU back from placement, or releases it. Returns the GPU afterwards. A GPU that a VM uses, that is held,
 * or that was removed does not change.
 */
export async function setGpuHeldBack(
  tx: Tx,
  gpuId: string,
  isHeldBack: boolean,
): Promise<(Gpu & { host_id: string }) | undefined> {
  const gpu = await findGpu(tx, gpuId)
  if (!gpu) return undefined
  await lock.one(tx, { id: gpu.host_id })
  await (isHeldBack ? holdBack : release).run(tx, { gpuId })
  return findGpu(tx, gpuId)
}

export interface FamilyCounts {
  location: string
  family: string
  total: number
  free: number
  unavailable: number
  claimed: number
  quarantined: number
  held: number
}
