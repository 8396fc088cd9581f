/**
 * Reads event streams and writes events in one process, so that commits and arrivals are measured with the
 * same clock.
 */
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { uuid } from '../src/domain/ids.ts'
import { Database } from '../src/postgres/database.ts'
import { Signals } from '../src/postgres/signals.ts'
import { emit } from '../src/store/events/events.ts'
import { percentile } from './figures.ts'
import type { Tenant } from './fixtures.ts'
import type { StreamResult, StreamTask } from './streams.ts'

/** The number of events in one transaction. Each belongs to a different project. */
const eventsPerTransaction = 10
const timeoutMs = 10_000

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
  const startedAt = performance.now()
  const writes: Promise<void>[] = []
  for (let sent = 0; sent < perSecond * seconds; sent += eventsPerTransaction) {
    await delay(Math.max(0, startedAt + (sent / perSecond) * 1000 - performance.now()))
    const writers = Array.from(
      { length: eventsPerTransaction },
      (_, n) => tenants[(sent + n) % tenants.length]!,
    )
    writes.push(writeEvents(database, writers, committed))
  }
  await Promise.all(writes)
  const tookMs = performance.now() - startedAt
  const expected = committed.size * streamsEach
  for (const until = performance.now() + timeoutMs; performance.now() < until; await delay(20))
    if (arrivals.length >= expected) break
  const { user, system } = process.cpuUsage(cpu)
  const loadCores = (user + system) / 1000 / (performance.now() - startedAt)
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

/** Writes events, and records when the commit of each was confirmed. */
async function writeEvents(
  database: Database,
  tenants: Tenant[],
  committed: Map<string, number>,
): Promise<void> {
  const ids = tenants.map(() => uuid())
  // These events have the same content as those of the service.
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
    get(`${url}/v0.1/projects/${projectId}/events`, { headers, agent: false }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`a stream returned ${response.statusCode}`))
      let rest = ''
      response.setEncoding('utf8').on('error', () => {})
      response.on('data', (text: string) => {
        const frames = (rest + text).split('\n\n')
        rest = frames.pop()!
        for (const frame of frames) {
          const data = /^data: (.*)$/m.exec(frame)?.[1]
          if (data) note(JSON.parse(data).id)
        }
      })
      // The first frame contains the position where the stream begins. From here on, no event is missed.
      response.once('data', () => resolve(response))
    }).on('error', reject)
  })
}
