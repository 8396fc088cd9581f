import type { GpuState, HostState } from '@slipway/contract'
import { uuid } from '../domain/ids.ts'
import { type Queryable, statement, type Tx } from './database.ts'

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

const insertMissing = statement<never, [string, string, string]>(
  'host_insert_missing',
  `INSERT INTO hosts (id, location, name) VALUES ($1, $2, $3) ON CONFLICT (location, name) DO NOTHING`,
)

const lockByName = statement<ReportedHost, [string, string]>(
  'host_lock_by_name',
  `SELECT id, state, is_draining, capabilities FROM hosts WHERE location = $1 AND name = $2 FOR NO KEY UPDATE`,
)

const gpusOf = statement<KnownGpuRow, [string]>(
  'gpu_list_of_host',
  `SELECT id, pci_address AS "pciAddress", model, numa_node AS "numaNode", iommu_group AS "iommuGroup", state,
          vm_id AS "vmId", is_held_back AS "isHeldBack"
   FROM gpus WHERE host_id = $1 ORDER BY pci_address`,
)

const updateHost = statement<never, [string, string, number, string, string]>(
  'host_apply_report',
  'UPDATE hosts SET family = $2, usable_gpus = $3, capabilities = $4, state = $5 WHERE id = $1',
)

const gpuColumns = `unnest($2::text[], $3::text[], $4::integer[], $5::integer[], $6::text[])
  AS w (pci_address, model, numa_node, iommu_group, state)`
type GpuColumns = [string[], string[], number[], (number | null)[], string[]]

// Every known GPU of the host is written, changed or not: that is what has its free counts made anew.
const updateGpus = statement<never, [string, ...GpuColumns]>(
  'gpu_update_of_host',
  `UPDATE gpus g SET model = w.model, numa_node = w.numa_node, iommu_group = w.iommu_group, state = w.state,
     quarantined_at = CASE w.state WHEN 'quarantined' THEN coalesce(g.quarantined_at, slipway_now()) END
   FROM ${gpuColumns} WHERE g.host_id = $1 AND g.pci_address = w.pci_address`,
)

const insertGpus = statement<never, [string, ...GpuColumns, string[]]>(
  'gpu_insert_of_host',
  `INSERT INTO gpus (id, host_id, pci_address, model, numa_node, iommu_group, state, quarantined_at)
   SELECT ($7::uuid[])[row_number() OVER ()], $1, w.*, CASE w.state WHEN 'quarantined' THEN slipway_now() END
   FROM ${gpuColumns}`,
)

const putReport = statement<never, [string, string]>(
  'host_report_put',
  `INSERT INTO host_reports (host_id, reported_at, fingerprint) VALUES ($1, slipway_now(), $2)
   ON CONFLICT (host_id) DO UPDATE SET reported_at = excluded.reported_at, fingerprint = excluded.fingerprint`,
)

const loseSilent = statement<{ id: string; name: string; location: string }, [number]>(
  'host_lose_silent',
  `UPDATE hosts h SET state = 'down' FROM host_reports r
   WHERE r.host_id = h.id AND h.state <> 'down' AND r.reported_at < slipway_now() - $1 * interval '1 millisecond'
   RETURNING h.id, h.name, h.location`,
)

export interface ReportedHost {
  id: string
  state: HostState
  is_draining: boolean
  capabilities: Record<string, unknown>
}

export interface GpuPlace {
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

/** The host of this name, made if need be, locked, with the GPUs that we know of. */
export async function lockReportedHost(
  tx: Tx,
  location: string,
  name: string,
): Promise<{ host: ReportedHost; gpus: KnownGpuRow[] }> {
  let host = await lockByName.one(tx, location, name)
  if (!host) {
    await insertMissing.run(tx, uuid(), location, name)
    host = (await lockByName.one(tx, location, name))!
  }
  return { host, gpus: await gpusOf.all(tx, host.id) }
}

const columnsOf = (gpus: GpuPlace[]): GpuColumns => [
  gpus.map((gpu) => gpu.pciAddress),
  gpus.map((gpu) => gpu.model),
  gpus.map((gpu) => gpu.numaNode),
  gpus.map((gpu) => gpu.iommuGroup),
  gpus.map((gpu) => gpu.state),
]

export async function writeReportedHost(
  tx: Tx,
  hostId: string,
  report: {
    family: string
    usableGpus: number
    capabilities: Record<string, unknown>
    state: HostState
    /** Those that have a row. */
    known: GpuPlace[]
    /** Those that have none yet. */
    found: GpuPlace[]
    fingerprint: string
  },
): Promise<void> {
  const { family, usableGpus, capabilities, state, known, found, fingerprint } = report
  await updateHost.run(tx, hostId, family, usableGpus, JSON.stringify(capabilities), state)
  await updateGpus.run(tx, hostId, ...columnsOf(known))
  await insertGpus.run(
    tx,
    hostId,
    ...columnsOf(found),
    found.map(() => uuid()),
  )
  await putReport.run(tx, hostId, fingerprint)
}

/** Hosts without a report for so long go down; answers them. */
export const loseSilentHosts = (tx: Tx, afterMs: number) => loseSilent.all(tx, afterMs)
