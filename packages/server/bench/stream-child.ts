/** Readers of event streams, and transactions that write events, in one process: one clock tells commit and arrival. */
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { uuid } from '../src/domain/ids.ts'
import { Database } from '../src/postgres/database.ts'
import { Signals } from '../src/postgres/signals.ts'
import { emit } from '../src/store/events/events.ts'
import { percentile } from './figures.ts'
import type { Tenant } from './fixtures.ts'
import type { StreamResult, StreamTask } from './streams.ts'

/** Events of one transaction, each of another project. */
const together = 10
const patienceMs = 10_000

process.once('message', async (task: StreamTask) => {
  const { url, databaseUrl, tenants, streamsEach, perSecond, seconds } = task
  const arrivals: { id: string; at: number }[] = []
  const note = (id: string) => arrivals.push({ id, at: performance.now() })
  const streams = await Promise.all(
    tenants.flatMap((tenant) => Array.from({ length: streamsEach }, () => openStream(url, tenant, note))),
  )
  const signals = new Signals(databaseUrl)
  await signals.open()
  const database = new Database({ url: databaseUrl, poolSize: 4, signals })
  const committed = new Map<string, number>()
  const cpu = process.cpuUsage()
  const begun = performance.now()
  const writes: Promise<void>[] = []
  for (let sent = 0; sent < perSecond * seconds; sent += together) {
    await delay(Math.max(0, begun + (sent / perSecond) * 1000 - performance.now()))
    const few = Array.from({ length: together }, (_, n) => tenants[(sent + n) % tenants.length]!)
    writes.push(writeEvents(database, few, committed))
  }
  await Promise.all(writes)
  const tookMs = performance.now() - begun
  const expected = committed.size * streamsEach
  for (const until = performance.now() + patienceMs; performance.now() < until; await delay(20))
    if (arrivals.length >= expected) break
  const { user, system } = process.cpuUsage(cpu)
  const loadCores = (user + system) / 1000 / (performance.now() - begun)
  for (const stream of streams) stream.destroy()
  const delays = arrivals
    .map(({ id, at }) => Math.max(0, at - committed.get(id)!))
    .sort((one, other) => one - other)
  process.send!({
    p50: percentile(delays, 0.5),
    p99: percentile(delays, 0.99),
    perSecond: committed.size / (tookMs / 1000),
    written: committed.size,
    missing: expected - arrivals.length,
    loadCores,
  } satisfies StreamResult)
})

/** Notes for each event when its commit was confirmed. */
async function writeEvents(
  database: Database,
  tenants: Tenant[],
  committed: Map<string, number>,
): Promise<void> {
  const ids = tenants.map(() => uuid())
  // The same interval as in the service.
  const events = tenants.map(({ projectId }, index) => ({
    id: ids[index]!,
    type: 'vm.running' as const,
    resourceType: 'vm',
    resourceId: ids[index]!,
    projectId,
    actor: `access_key:${projectId}`,
    requestId: ids[index]!,
    data: { name: `vm-${ids[index]}`, labels: {}, operation_id: ids[index] },
  }))
  await database.transaction(async (tx) => {
    for (const event of events) await emit(tx, event)
  })
  const at = performance.now()
  for (const id of ids) committed.set(id, at)
}

/** Calls `note` with the id of each event that arrives. */
function openStream(
  url: string,
  { projectId, token }: Tenant,
  note: (id: string) => void,
): Promise<IncomingMessage> {
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    get(`${url}/v0.1/projects/${projectId}/events`, { headers, agent: false }, (answer) => {
      if (answer.statusCode !== 200) return reject(new Error(`a stream answered ${answer.statusCode}`))
      let rest = ''
      answer.setEncoding('utf8').on('error', () => {})
      answer.on('data', (text: string) => {
        const frames = (rest + text).split('\n\n')
        rest = frames.pop()!
        for (const frame of frames) {
          const data = /^data: (.*)$/m.exec(frame)?.[1]
          if (data) note(JSON.parse(data).id)
        }
      })
      // The first frame names where the stream begins: from here on nothing is missed.
      answer.once('data', () => resolve(answer))
    }).on('error', reject)
  })
}
