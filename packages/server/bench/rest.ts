/**
 * Measures the CPU time that a service needs while no client uses it, with few hosts and with many. The
 * difference is the cost of inspections. BENCH_HOSTS and BENCH_REST_S change the number of hosts and the
 * duration.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '@slipway/testing/eventually.ts'
import { cpuMs, familyCpuMs } from './cpu.ts'
import { addCopies, addTenants, createVms } from './fixtures.ts'
import { RunningService } from './running-service.ts'

const fewHosts = 10
const manyHosts = Number(process.env.BENCH_HOSTS ?? 5_000)
const restMs = Number(process.env.BENCH_REST_S ?? 120) * 1_000
const longestMs = 600_000
/** How long to wait after VMs were added, until the service does only periodic work. */
const settleMs = 30_000

interface Cores {
  server: number
  postgres: number
}

async function measure(hosts: number): Promise<Cores> {
  const service = new RunningService(hosts)
  try {
    await service.start()
    await eventually(async () => {
      const { rows } = await service.database.query({ text: 'SELECT count(*)::int FROM hosts' })
      return rows[0].count >= hosts
    }, longestMs)
    const tenants = await addTenants(service.database, 'template', 1, 1)
    await addCopies(service, await createVms(service, tenants, 2), 2 * hosts)
    await delay(settleMs)
    return await coresAtRest(service)
  } finally {
    await service.close()
  }
}

async function coresAtRest({ main, postmaster }: RunningService): Promise<Cores> {
  const read = () => ({ at: performance.now(), server: cpuMs(main.pid), postgres: familyCpuMs(postmaster) })
  const before = read()
  await delay(restMs)
  const after = read()
  const share = (key: 'server' | 'postgres') => (after[key] - before[key]) / (after.at - before.at)
  return { server: share('server'), postgres: share('postgres') }
}

function show(hosts: number, { server, postgres }: Cores): void {
  const parts = `server ${server.toFixed(4)} + PostgreSQL ${postgres.toFixed(4)}`
  console.log(
    `${hosts.toLocaleString('en')} hosts, ${(2 * hosts).toLocaleString('en')} VMs: ${(server + postgres).toFixed(4)} cores (${parts})`,
  )
}

const few = await measure(fewHosts)
show(fewHosts, few)
const many = await measure(manyHosts)
show(manyHosts, many)
const added = many.server + many.postgres - few.server - few.postgres
console.log(`per 1,000 hosts: ${((added / (manyHosts - fewHosts)) * 1_000).toFixed(4)} cores`)
