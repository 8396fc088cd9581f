import { cpuMs, familyCpuMs } from './cpu.ts'
import type { Cpu } from './figures.ts'
import type { RunningService } from './running-service.ts'

/** The cost of work, apart from its duration. */
export interface Cost {
  serverMs: number
  postgresMs: number
  statements: number
  roundTrips: number
  commits: number
  walBytes: number
}

/** Runs the work and measures what the server processes and PostgreSQL spent on it. */
export async function measureCost<T>(
  service: RunningService,
  work: () => Promise<T>,
  pids = [service.main.pid],
): Promise<{ result: T; cost: Cost }> {
  const readCounters = async (): Promise<Cost> => ({
    ...(await readServiceCounters(service)),
    serverMs: pids.reduce((sum, pid) => sum + cpuMs(pid), 0),
    postgresMs: familyCpuMs(service.postmaster),
  })
  const before = await readCounters()
  const result = await work()
  const after = await readCounters()
  const names = Object.keys(before) as (keyof Cost)[]
  const cost = Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as unknown as Cost
  return { result, cost }
}

/** Returns the CPU time of each of `count` changes. */
export const cpuEach = ({ serverMs, postgresMs }: Cost, count: number, loadCores: number): Cpu => ({
  serverMs: serverMs / count,
  postgresMs: postgresMs / count,
  loadCores,
})

async function readServiceCounters({ main, database }: RunningService) {
  const metrics = await (await fetch(`${main.url}/metrics`)).text()
  const total = (what: string) =>
    Number(new RegExp(`^slipway_database_${what}_total (\\S+)`, 'm').exec(metrics)![1])
  const { rows } = await database.query({
    text: `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS bytes`,
  })
  return {
    statements: total('statements'),
    roundTrips: total('round_trips'),
    commits: total('commits'),
    walBytes: rows[0].bytes as number,
  }
}
