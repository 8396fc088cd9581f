import type { GpuState, HostState } from '@slipway/contract'
import { uuid } from '../../domain/ids.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'
import type { Inspection } from './inspections.ts'

/** When a report was requested, and in which inspection of its location. */
export interface ReportRequest {
  /** Null means now. */
  askedAt: Date | null
  inspection: number
}

// Reports without a change only update their time, in one statement for all hosts and without locking any
// host. The report rows are locked in order, so that two processes with the same reports never deadlock. The
// time of a report is that of its request, so that a late report does not make a silent host look alive. If
// the clock was set back, a stored time can be in the future; it is replaced, because the host would look
// alive until then.
const touch = statement<{ name: string }, { location: string } & Columns<Report> & ReportRequest>(
  'host_report_touch',
  `WITH same AS MATERIALIZED (
     SELECT r.host_id, h.name FROM unnest(:name::text[], :fingerprint::text[]) AS w (name, fingerprint)
     JOIN hosts h ON h.location = :location AND h.name = w.name AND h.state <> 'down'
     JOIN host_reports r ON r.host_id = h.id AND r.fingerprint = w.fingerprint
     ORDER BY r.host_id FOR NO KEY UPDATE OF r)
   UPDATE host_reports r
   SET reported_at = least(t.now, greatest(r.reported_at, coalesce(:askedAt, t.now))), inspection = greatest(r.inspection, :inspection)
   FROM same CROSS JOIN moment t WHERE r.host_id = same.host_id
   RETURNING same.name`,
)

const insertMissing = statement<never, { location: string; ids: string[]; names: string[] }>(
  'host_insert_missing',
  `INSERT INTO hosts (id, location, name)
   SELECT w.id, :location, w.name FROM unnest(:ids::uuid[], :names::text[]) AS w (id, name)
   ORDER BY w.name ON CONFLICT (location, name) DO NOTHING`,
)

// Locks hosts in id order, like every statement that locks several hosts. Skips hosts that were forgotten in
// the meantime.
const lockByName = statement<
  ReportedHost,
  { location: string; names: string[]; askedAt: Date | null; silenceMs: number }
>(
  'host_lock_by_name',
  `SELECT id, name, state, is_draining, capabilities,
          coalesce(:askedAt::timestamptz < slipway_now() - :silenceMs * interval '1 millisecond', false) AS is_late
   FROM hosts
   WHERE location = :location AND name = ANY(:names) AND forgotten_at IS NULL
   ORDER BY id FOR NO KEY UPDATE`,
)

const gpusOf = statement<KnownGpuRow, { ids: string[] }>(
  'gpu_list_of_hosts',
  `SELECT id, host_id AS "hostId", pci_address AS "pciAddress", model, numa_node AS "numaNode",
          iommu_group AS "iommuGroup", state, vm_id AS "vmId", is_held_back AS "isHeldBack",
          suspect_since IS NOT NULL AS "isSuspect"
   FROM gpus WHERE host_id = ANY(:ids::uuid[])`,
)

type HostColumns = Pick<HostChange, 'id' | 'family' | 'usableGpus' | 'capabilities' | 'state'>

const updateHosts = statement<never, Columns<HostColumns>>(
  'host_apply_reports',
  `UPDATE hosts h SET family = w.family, usable_gpus = w.usable_gpus, capabilities = w.capabilities, state = w.state
   FROM unnest(:id::uuid[], :family::text[], :usableGpus::integer[], :capabilities::jsonb[], :state::text[])
     AS w (id, family, usable_gpus, capabilities, state)
   WHERE h.id = w.id`,
)

const gpuColumns = `unnest(:hostId::uuid[], :pciAddress::text[], :model::text[], :numaNode::integer[],
    :iommuGroup::integer[], :state::text[], :isLost::boolean[], :hostXids::jsonb[])
  AS w (host_id, pci_address, model, numa_node, iommu_group, state, is_lost, host_xids)`
const gpuMembers = [
  'hostId',
  'pciAddress',
  'model',
  'numaNode',
  'iommuGroup',
  'state',
  'isLost',
  'hostXids',
] as const
/** Rounded to milliseconds, because JavaScript later writes this time as the time of a fault. */
const lostNow = `date_trunc('milliseconds', slipway_now())`

// Only a reservation keeps a GPU that has failed its check.
const keepsHold = `w.state <> 'gone' AND NOT (w.state = 'quarantined' AND g.held_kind IS DISTINCT FROM 'reservation')`

// Writes every known GPU of the hosts, even if it did not change, so that a trigger recounts the free GPUs.
const updateGpus = statement<never, Columns<ReportedGpu>>(
  'gpu_apply_reports',
  `UPDATE gpus g SET model = w.model, numa_node = w.numa_node, iommu_group = w.iommu_group, state = w.state,
     quarantined_at = CASE w.state WHEN 'quarantined' THEN coalesce(g.quarantined_at, slipway_now()) END,
     held_for = CASE WHEN ${keepsHold} THEN g.held_for END, held_kind = CASE WHEN ${keepsHold} THEN g.held_kind END,
     lost_at = CASE WHEN w.is_lost THEN coalesce(g.lost_at, ${lostNow}) END, host_xids = w.host_xids
   FROM ${gpuColumns} WHERE g.host_id = w.host_id AND g.pci_address = w.pci_address`,
)

const insertGpus = statement<never, Columns<ReportedGpu> & { ids: string[] }>(
  'gpu_insert_reported',
  `INSERT INTO gpus (id, host_id, pci_address, model, numa_node, iommu_group, state, lost_at, host_xids,
     quarantined_at)
   SELECT (:ids::uuid[])[row_number() OVER ()], w.host_id, w.pci_address, w.model, w.numa_node, w.iommu_group, w.state,
          CASE WHEN w.is_lost THEN ${lostNow} END, w.host_xids, CASE w.state WHEN 'quarantined' THEN slipway_now() END
   FROM ${gpuColumns}`,
)

const putReports = statement<never, Columns<Pick<HostChange, 'id' | 'fingerprint'>> & ReportRequest>(
  'host_report_put',
  `INSERT INTO host_reports (host_id, reported_at, fingerprint, inspection)
   SELECT w.host_id, coalesce(:askedAt, slipway_now()), w.fingerprint, :inspection
   FROM unnest(:id::uuid[], :fingerprint::text[]) AS w (host_id, fingerprint)
   ON CONFLICT (host_id) DO UPDATE SET
     reported_at = least(slipway_now(), greatest(host_reports.reported_at, excluded.reported_at)),
     fingerprint = excluded.fingerprint, inspection = greatest(host_reports.inspection, excluded.inspection)`,
)

/**
 * Marks these hosts as down immediately, and returns those that were not down. Locks hosts in id order, like
 * every statement that locks several hosts.
 */
export const markHostsDown = statement<LostHost, { location: string; names: string[] }, Tx>(
  'host_lose_named',
  `WITH lost AS MATERIALIZED (
     SELECT id FROM hosts WHERE location = :location AND name = ANY (:names) AND state <> 'down'
     ORDER BY id FOR NO KEY UPDATE)
   UPDATE hosts h SET state = 'down' FROM lost WHERE h.id = lost.id RETURNING h.id, h.name, h.location`,
).allBy('location', 'names')

// A host that reported in this inspection or a later one is not silent, even if the clock was changed
// afterwards. The duration of the inspection does not count as silence.
const markSilentDown = statement<
  LostHost,
  { afterMs: number; locations: string[] | null; asOf: Date | null; inspection: number | null }
>(
  'host_lose_silent',
  `UPDATE hosts h SET state = 'down' FROM host_reports r
   WHERE r.host_id = h.id AND h.state <> 'down' AND (:locations::text[] IS NULL OR h.location = ANY (:locations))
     AND r.reported_at < least(:asOf, slipway_now()) - :afterMs * interval '1 millisecond'
     AND (:inspection::bigint IS NULL OR r.inspection < :inspection)
   RETURNING h.id, h.name, h.location`,
)

export interface LostHost {
  id: string
  name: string
  location: string
}

export interface ReportedHost {
  id: string
  name: string
  state: HostState
  is_draining: boolean
  capabilities: Record<string, unknown>
  /** True if the report was requested long ago: the host may have been silent since then. */
  is_late: boolean
}

export interface ReportedGpu {
  hostId: string
  pciAddress: string
  model: string
  numaNode: number
  iommuGroup: number | null
  state: GpuState
  /** True if the host does not report the GPU although a VM uses it, or if the GPU has failed its check. */
  isLost: boolean
  /** The errors that the host has seen, as JSON: [{xid, at}]; null if there are none. */
  hostXids: string | null
}

export interface KnownGpuRow extends Omit<ReportedGpu, 'isLost' | 'hostXids'> {
  id: string
  vmId: string | null
  isHeldBack: boolean
  isSuspect: boolean
}

interface Report {
  name: string
  fingerprint: string
}

/**
 * Updates the times of reports that are the same as their host's last report. Returns the names of these
 * hosts.
 */
export async function touchReports(
  db: Queryable,
  location: string,
  reports: Report[],
  asked: ReportRequest,
): Promise<Set<string>> {
  const rows = await touch.all(db, { location, ...asked, ...columns(reports, ['name', 'fingerprint']) })
  return new Set(rows.map(({ name }) => name))
}

/** Locks the hosts with these names, creates missing ones, and returns them with their known GPUs. */
export async function lockReportedHosts(
  tx: Tx,
  location: string,
  names: string[],
  asked: { askedAt: Date | null; silenceMs: number },
): Promise<{ hosts: ReportedHost[]; gpus: KnownGpuRow[] }> {
  let hosts = await lockByName.all(tx, { location, names, ...asked })
  if (hosts.length < names.length) {
    const known = new Set(hosts.map(({ name }) => name))
    const missing = names.filter((name) => !known.has(name))
    const ids = missing.map(() => uuid())
    await insertMissing.run(tx, { location, ids, names: missing })
    hosts = await lockByName.all(tx, { location, names, ...asked })
  }
  const ids = hosts.map(({ id }) => id)
  return { hosts, gpus: await gpusOf.all(tx, { ids }) }
}

export interface HostChange {
  id: string
  family: string
  usableGpus: number
  capabilities: Record<string, unknown>
  state: HostState
  fingerprint: string
  /** GPUs that have a row. */
  known: ReportedGpu[]
  /** GPUs that have no row yet. */
  found: ReportedGpu[]
}

/**
 * The transaction has locked the hosts. Hosts are written before GPUs, because the counts of free GPUs depend on the
 * hosts.
 */
export async function writeReportedHosts(tx: Tx, hosts: HostChange[], asked: ReportRequest): Promise<void> {
  await updateHosts.run(tx, columns(hosts, ['id', 'family', 'usableGpus', 'capabilities', 'state']))
  const known = hosts.flatMap((host) => host.known)
  await updateGpus.run(tx, columns(known, gpuMembers))
  const found = hosts.flatMap((host) => host.found)
  await insertGpus.run(tx, { ...columns(found, gpuMembers), ids: found.map(() => uuid()) })
  await putReports.run(tx, { ...columns(hosts, ['id', 'fingerprint']), ...asked })
}

/** The hosts to check for silence, and the last inspection. */
export interface Silence {
  /** Absent for all locations. */
  locations?: string[]
  inspection?: Pick<Inspection, 'number' | 'begunAt'>
}

/** Marks hosts as down that have not reported for `afterMs`, and returns them. */
export const markSilentHostsDown = (tx: Tx, afterMs: number, { locations, inspection }: Silence) =>
  markSilentDown.all(tx, {
    afterMs,
    locations: locations ?? null,
    asOf: inspection?.begunAt ?? null,
    inspection: inspection?.number ?? null,
  })
