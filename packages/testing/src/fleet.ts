import { loadConfig } from '@slipway/server/config/index.ts'
import { uuid } from '@slipway/server/domain/ids.ts'
import type { GpuReport, HostReport } from '@slipway/server/engines/engine.ts'
import type { Database, Queryable } from '@slipway/server/postgres/database.ts'
import { applyChangedReports, findChangedReports } from '@slipway/server/reconcile/host-reports.ts'
import { putLocation } from '@slipway/server/store/fleet/locations.ts'

/** Returns the configuration of a server that is started without a file or environment variables. */
export const defaultConfig = (...flags: string[]) =>
  loadConfig(flags, {}, () => {
    throw Object.assign(new Error('no file'), { code: 'ENOENT' })
  })

/** Adds a new location, so that the tests of a file do not affect each other. */
export async function addLocation(database: Database, storage: 'shared' | 'local' = 'shared') {
  const name = `test-${uuid().slice(-12)}-a`
  await database.transaction((tx) =>
    putLocation(tx, { name, description: '', engine: 'simulated', storage, publicIpv4: '', position: 9 }),
  )
  return name
}

export const gpuReport = (index: number, more: Partial<GpuReport> = {}): GpuReport => ({
  pciAddress: `0000:${index.toString(16).padStart(2, '0')}:00.0`,
  model: 'A100 40GB PCIe',
  numaNode: index % 2,
  iommuGroup: index,
  holderVmId: null,
  isClean: true,
  ...more,
})

/**
 * Returns a report of a host that has enough cores and memory for all its GPUs, which are on two NUMA nodes.
 */
export const hostReport = (name: string, gpus: number | GpuReport[] = 8): HostReport => ({
  name,
  cpuCores: 192,
  memoryGb: 1920,
  capabilities: {},
  gpus: typeof gpus === 'number' ? Array.from({ length: gpus }, (_, i) => gpuReport(i)) : gpus,
  vms: [],
  disks: [],
})

/** Applies host reports as the reconciler does. Returns how many differed from the previous reports. */
export async function reportHosts(
  database: Database,
  location: string,
  reports: HostReport[],
  asked: { askedAt: Date | null; inspection: number } = { askedAt: null, inspection: 0 },
): Promise<number> {
  const changed = await findChangedReports(database, location, reports, asked)
  await applyChangedReports(database, location, 'simulated', changed, asked)
  return changed.length
}

export const reportHost = (database: Database, location: string, report: HostReport) =>
  reportHosts(database, location, [report])

/** Adds a VM that exists at the engine but not in the database. */
export const addStrayVm = (database: Queryable, id: string) =>
  rows(
    database,
    `INSERT INTO simulated_vms (id, location, host, generation, spec)
     SELECT $1, location, name, 1, '{}' FROM simulated_hosts WHERE location = 'us-east1-a' LIMIT 1`,
    id,
  )

export async function rows<Row>(database: Queryable, text: string, ...values: unknown[]): Promise<Row[]> {
  return (await database.query({ text, values })).rows
}
