import type { GpuState, HostState } from '@slipway/contract'
import { uuid } from '../../domain/ids.ts'
import { type Queryable, statement, type Tx } from '../database.ts'

// Reports that say nothing new write nothing but their time, for all hosts at once and without a lock on any host.
// Locked in order, so that two processes with the same reports never wait for each other in a circle.
const touch = statement<{ name: string }, [string, string[], string[]]>(
  'host_report_touch',
  `WITH same AS MATERIALIZED (
     SELECT r.host_id, h.name FROM unnest($2::text[], $3::text[]) AS w (name, fingerprint)
     JOIN hosts h ON h.location = $1 AND h.name = w.name AND h.state <> 'down'
     JOIN host_reports r ON r.host_id = h.id AND r.fingerprint = w.fingerprint
     ORDER BY r.host_id FOR NO KEY UPDATE OF r)
   UPDATE host_reports r SET reported_at = slipway_now() FROM same WHERE r.host_id = same.host_id
   RETURNING same.name`,
)

const insertMissing = statement<never, [string, string[], string[]]>(
  'host_insert_missing',
  `INSERT INTO hosts (id, location, name) SELECT w.id, $1, w.name FROM unnest($2::uuid[], $3::text[]) AS w (id, name)
   ORDER BY w.name ON CONFLICT (location, name) DO NOTHING`,
)

// In order, as every statement that locks several hosts.
const lockByName = statement<ReportedHost, [string, string[]]>(
  'host_lock_by_name',
  `SELECT id, name, state, is_draining, capabilities FROM hosts WHERE location = $1 AND name = ANY($2)
   ORDER BY id FOR NO KEY UPDATE`,
)

const gpusOf = statement<KnownGpuRow, [string[]]>(
  'gpu_list_of_hosts',
  `SELECT id, host_id AS "hostId", pci_address AS "pciAddress", model, numa_node AS "numaNode",
          iommu_group AS "iommuGroup", state, vm_id AS "vmId", is_held_back AS "isHeldBack"
   FROM gpus WHERE host_id = ANY($1::uuid[])`,
)

const updateHosts = statement<never, [string[], string[], number[], string[], string[]]>(
  'host_apply_reports',
  `UPDATE hosts h SET family = w.family, usable_gpus = w.usable_gpus, capabilities = w.capabilities, state = w.state
   FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::jsonb[], $5::text[])
     AS w (id, family, usable_gpus, capabilities, state)
   WHERE h.id = w.id`,
)

const gpuColumns = `unnest($1::uuid[], $2::text[], $3::text[], $4::integer[], $5::integer[], $6::text[])
  AS w (host_id, pci_address, model, numa_node, iommu_group, state)`
type GpuColumns = [string[], string[], string[], number[], (number | null)[], string[]]

// Every known GPU of the hosts is written, changed or not: that is what has their free counts made anew.
const updateGpus = statement<never, GpuColumns>(
  'gpu_apply_reports',
  `UPDATE gpus g SET model = w.model, numa_node = w.numa_node, iommu_group = w.iommu_group, state = w.state,
     quarantined_at = CASE w.state WHEN 'quarantined' THEN coalesce(g.quarantined_at, slipway_now()) END
   FROM ${gpuColumns} WHERE g.host_id = w.host_id AND g.pci_address = w.pci_address`,
)

const insertGpus = statement<never, [...GpuColumns, string[]]>(
  'gpu_insert_reported',
  `INSERT INTO gpus (id, host_id, pci_address, model, numa_node, iommu_group, state, quarantined_at)
   SELECT ($7::uuid[])[row_number() OVER ()], w.*, CASE w.state WHEN 'quarantined' THEN slipway_now() END
   FROM ${gpuColumns}`,
)

const putReports = statement<never, [string[], string[]]>(
  'host_report_put',
  `INSERT INTO host_reports (host_id, reported_at, fingerprint)
   SELECT w.host_id, slipway_now(), w.fingerprint FROM unnest($1::uuid[], $2::text[]) AS w (host_id, fingerprint)
   ON CONFLICT (host_id) DO UPDATE SET reported_at = excluded.reported_at, fingerprint = excluded.fingerprint`,
)

// As of a moment before the newest reports: whoever turns the clock in between loses no host.
const loseSilent = statement<{ id: string; name: string; location: string }, [number, Date | null]>(
  'host_lose_silent',
  `UPDATE hosts h SET state = 'down' FROM host_reports r
   WHERE r.host_id = h.id AND h.state <> 'down' AND r.reported_at < coalesce($2, slipway_now()) - $1 * interval '1 millisecond'
   RETURNING h.id, h.name, h.location`,
)

export interface ReportedHost {
  id: string
  name: string
  state: HostState
  is_draining: boolean
  capabilities: Record<string, unknown>
}

export interface GpuPlace {
  hostId: string
  pciAddress: string
  model: string
  numaNode: number
  iommuGroup: number | null
  state: GpuState
}

export interface KnownGpuRow extends GpuPlace {
  id: string
  vmId: string | null
  isHeldBack: boolean
}

/** Notes the time of those reports that repeat the last one of their host; answers their names. */
export async function touchReports(
  db: Queryable,
  location: string,
  reports: { name: string; fingerprint: string }[],
): Promise<Set<string>> {
  const rows = await touch.all(
    db,
    location,
    reports.map(({ name }) => name),
    reports.map(({ fingerprint }) => fingerprint),
  )
  return new Set(rows.map(({ name }) => name))
}

/** The hosts of these names, made where need be, locked, with the GPUs that we know of. */
export async function lockReportedHosts(
  tx: Tx,
  location: string,
  names: string[],
): Promise<{ hosts: ReportedHost[]; gpus: KnownGpuRow[] }> {
  let hosts = await lockByName.all(tx, location, names)
  if (hosts.length < names.length) {
    const known = new Set(hosts.map(({ name }) => name))
    const missing = names.filter((name) => !known.has(name))
    const ids = missing.map(() => uuid())
    await insertMissing.run(tx, location, ids, missing)
    hosts = await lockByName.all(tx, location, names)
  }
  const ids = hosts.map(({ id }) => id)
  return { hosts, gpus: await gpusOf.all(tx, ids) }
}

export interface HostChange {
  id: string
  family: string
  usableGpus: number
  capabilities: Record<string, unknown>
  state: HostState
  fingerprint: string
  /** GPUs that have a row. */
  known: GpuPlace[]
  /** GPUs that have none yet. */
  found: GpuPlace[]
}

/** Of hosts that this transaction has locked. Their sizes come first: the free counts are made from them. */
export async function writeReportedHosts(tx: Tx, hosts: HostChange[]): Promise<void> {
  const ids = hosts.map(({ id }) => id)
  await updateHosts.run(
    tx,
    ids,
    hosts.map(({ family }) => family),
    hosts.map(({ usableGpus }) => usableGpus),
    hosts.map(({ capabilities }) => JSON.stringify(capabilities)),
    hosts.map(({ state }) => state),
  )
  await updateGpus.run(tx, ...columnsOf(hosts.flatMap(({ known }) => known)))
  const found = hosts.flatMap((host) => host.found)
  const gpuIds = found.map(() => uuid())
  await insertGpus.run(tx, ...columnsOf(found), gpuIds)
  await putReports.run(
    tx,
    ids,
    hosts.map(({ fingerprint }) => fingerprint),
  )
}

const columnsOf = (gpus: GpuPlace[]): GpuColumns => [
  gpus.map((gpu) => gpu.hostId),
  gpus.map((gpu) => gpu.pciAddress),
  gpus.map((gpu) => gpu.model),
  gpus.map((gpu) => gpu.numaNode),
  gpus.map((gpu) => gpu.iommuGroup),
  gpus.map((gpu) => gpu.state),
]

/** Hosts without a report for so long go down; answers them. */
export const loseSilentHosts = (tx: Tx, afterMs: number, asOf: Date | null) =>
  loseSilent.all(tx, afterMs, asOf)
