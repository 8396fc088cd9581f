/**
 * Speed of the service against limits measured in the same run, on the same machine, by the same client:
 * one process, embedded PostgreSQL with fsync, simulated engine without delays, 15,000 hosts; first with few rows, then
 * with many VMs and what they leave behind: finished operations, events, closed meters.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Figure, print } from '@slipway/testing/report.ts'
import fastify from 'fastify'
import { pino } from 'pino'
import { loadConfig } from '../src/config/index.ts'
import { hashSecret } from '../src/domain/secret.ts'
import { startServer } from '../src/server.ts'
import { seedDemo } from '../src/setup/demo.ts'
import { Database } from '../src/store/database.ts'
import { openEmbedded } from '../src/store/embedded/index.ts'
import { statement } from '../src/store/statement.ts'
import { addHistory, addProjects, addVmRows, noise } from './fixtures.ts'
import { type Load, runLoad } from './load.ts'

const hostsPerLocation = Number(process.env.BENCH_HOSTS ?? 15_000) / 3
const vmRows = [1_000, Number(process.env.BENCH_VMS ?? 100_000)]
const clients = 32
const seconds = Number(process.env.BENCH_SECONDS ?? 6)
const oneClientSamples = 200

const dataDir = mkdtempSync(join(tmpdir(), 'slipway-bench-'))
const embedded = await openEmbedded({ dataDir, log: () => {} })
const config = loadConfig(['--port', '0', '--data-dir', dataDir], {}, () => {
  throw Object.assign(new Error('no file'), { code: 'ENOENT' })
})
config.limits.requestsPerSecond = 1_000_000
config.limits.burst = 1_000_000
for (const location of config.locations)
  if (location.engine === 'simulated')
    location.simulated = {
      bootMs: [0, 0],
      quarantineMs: 0,
      hosts: [{ count: hostsPerLocation, model: 'A100 40GB PCIe', gpus: 8 }],
    }
const begun = performance.now()
const server = await startServer(config, embedded.url, pino({ level: 'error' }))
console.error(`  ${hostsPerLocation * 3} hosts known after ${Math.round(performance.now() - begun)} ms`)
const demo = (await seedDemo(
  { database: server.services.database, config },
  { api: server.url, console: server.url },
))!
const database = new Database({ url: embedded.superuserUrl, poolSize: 40 })
const tenants = await addProjects(database, demo, 8)

const insertRow = statement<never, { n: number }>('bench_insert', 'INSERT INTO bench_rows (n) VALUES (:n)')
const selectVm = statement<{ id: string }, { id: string }>('bench_select', 'SELECT * FROM vms WHERE id = :id')

const figures: Figure[] = []
for (const rows of vmRows) {
  await addVmRows(database, demo.project_id, rows)
  const history = await addHistory(database, demo.project_id, rows)
  console.error(
    `  ${rows} VM rows, ${history.operations} operations, ${history.events} events, ${history.intervals} intervals`,
  )
  // Without it the planner would go on with what it knew of the empty tables.
  await database.query({ text: 'ANALYZE' })
  await measureCreation(rows)
  await measureReading(rows)
}
print(figures)
await database.close()
await server.close()
await embedded.stop()
rmSync(dataDir, { recursive: true, force: true })

/** POST → SUCCEEDED, for one client and for many, against as many bare transactions as a creation takes. */
async function measureCreation(rows: number): Promise<void> {
  const create: Load = {
    kind: 'create',
    url: server.url,
    tenants,
    clients: 1,
    count: 40,
    location: 'us-east1-a',
  }
  await runLoad(create)
  const before = await transactions()
  const one = await runLoad({ ...create, count: oneClientSamples })
  const perVm = ((await transactions()) - before) / oneClientSamples
  const many = await runLoad({ ...create, clients, seconds, count: undefined, location: 'us-west1-a' })
  const bareOne = await bareTransactions(1, Math.min(seconds, 3))
  const bareMany = await bareTransactions(clients, Math.min(seconds, 4))
  const singleMany = await bareTransactions(clients, Math.min(seconds, 4), 'one statement')
  const at = `${rows} VMs and history`
  figures.push(
    {
      what: `POST → SUCCEEDED, p50, 1 client, ${at}`,
      value: one.p50,
      unit: 'ms',
      limit: perVm / (bareOne / 1000),
      limitIs: `${perVm.toFixed(1)} bare transactions`,
      aim: 'p50 ≤ 20 ms',
    },
    {
      what: `POST → SUCCEEDED, p99, 1 client, ${at}`,
      value: one.p99,
      unit: 'ms',
      limit: perVm / (bareOne / 1000),
      limitIs: `${perVm.toFixed(1)} bare transactions`,
    },
    {
      what: `VMs to running per second, ${clients} clients, ${at}`,
      value: many.perSecond,
      unit: '/s',
      limit: bareMany / perVm,
      limitIs: `bare transactions / ${perVm.toFixed(1)}`,
      aim: 'ratio ≥ 0.3',
    },
    {
      what: `VMs to running per second, ${clients} clients, ${at}`,
      value: many.perSecond,
      unit: '/s',
      limit: singleMany / perVm,
      limitIs: `single INSERTs / ${perVm.toFixed(1)}`,
    },
  )
}

async function measureReading(rows: number): Promise<void> {
  const vm = await database.query({
    text: `SELECT id FROM vms WHERE project_id = $1 ORDER BY id LIMIT 1`,
    values: [demo.project_id],
  })
  const path = `/v0.1/projects/${demo.project_id}/vms/${vm.rows[0].id}`
  const answer = await (
    await fetch(server.url + path, { headers: { authorization: `Bearer ${demo.access_key}` } })
  ).text()
  const bare = await bareRoutes(answer, vm.rows[0].id)
  const load: Load = { kind: 'get', url: server.url, path, token: demo.access_key, clients, seconds }
  const [get, withSelect, withoutSelect] = await inTurns([
    load,
    { ...load, url: bare.url, path: '/select' },
    { ...load, url: bare.url, path: '/bare' },
  ])
  await bare.close()
  figures.push(
    {
      what: `GET VM per second, ${rows} VMs and history`,
      value: get!,
      unit: '/s',
      limit: withSelect!,
      limitIs: 'bare route with one SELECT',
      aim: 'ratio ≥ 0.8',
    },
    {
      what: `GET VM per second, ${rows} VMs and history`,
      value: get!,
      unit: '/s',
      limit: withoutSelect!,
      limitIs: 'bare route',
    },
  )
}

/** Short rounds that take turns, so that whatever else the machine does meets all alike; the median of each. */
async function inTurns(loads: (Load & { kind: 'get' })[]): Promise<number[]> {
  const rounds = Math.max(3, seconds)
  const rates = loads.map((): number[] => [])
  for (const load of loads) await runLoad({ ...load, seconds: 1 })
  for (let round = 0; round < rounds; round++)
    for (const [i, load] of loads.entries())
      rates[i]!.push((await runLoad({ ...load, seconds: 1 })).perSecond)
  return rates.map((each) => each.sort((a, b) => a - b)[Math.floor(each.length / 2)]!)
}

/** Commits of the service's own database so far. */
async function transactions(): Promise<number> {
  await noise(1_100)
  const { rows } = await database.query({
    text: 'SELECT xact_commit::float8 AS n FROM pg_stat_database WHERE datname = current_database()',
  })
  return rows[0].n
}

/** The smallest durable change, over and over: in a transaction that is begun and committed, or by itself. */
async function bareTransactions(
  connections: number,
  forSeconds: number,
  kind: 'transaction' | 'one statement' = 'transaction',
): Promise<number> {
  await database.query({
    text: 'CREATE TABLE IF NOT EXISTS bench_rows (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n integer)',
  })
  const change = (n: number) =>
    kind === 'transaction'
      ? database.transaction((tx) => insertRow.run(tx, { n }))
      : insertRow.run(database, { n })
  const until = performance.now() + forSeconds * 1000
  let count = 0
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < until) await change(count++)
    }),
  )
  return count / forSeconds
}

/** What any service on this stack must at least do: check a bearer, maybe one SELECT, and send the same bytes. */
async function bareRoutes(bytes: string, vmId: string) {
  const app = fastify()
  const known = new Map([[hashSecret(demo.access_key).toString('base64'), true]])
  const isKnown = (authorization = '') => known.has(hashSecret(authorization.slice(7)).toString('base64'))
  app.get('/bare', async (request, reply) => {
    if (!isKnown(request.headers.authorization)) return reply.code(401).send()
    return reply.type('application/json').send(bytes)
  })
  app.get('/select', async (request, reply) => {
    if (!isKnown(request.headers.authorization)) return reply.code(401).send()
    await selectVm.one(server.services.database, { id: vmId })
    return reply.type('application/json').send(bytes)
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { url, close: () => app.close() }
}
