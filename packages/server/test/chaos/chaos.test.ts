import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { clockOf } from '@slipway/testing/postgres/clock.ts'
import { root } from '@slipway/testing/root.ts'
import { countOf } from '@slipway/testing/setup/counts.ts'
import { startReceiver, verify } from '@slipway/testing/webhook-receiver.ts'
import { expect, onTestFinished, test } from 'vitest'
import { checkAll } from './checks.ts'
import { Client } from './client.ts'
import { Cluster } from './cluster.ts'
import type { Evidence } from './evidence.ts'
import { Faults, planOf } from './faults.ts'
import { History } from './history.ts'
import { EngineWatch, StreamReader } from './observers.ts'
import { untilQuiet } from './quiet.ts'
import { Tenant } from './tenant.ts'

const faultCount = Number(process.env.SLIPWAY_CHAOS_FAULTS ?? countOf('chaosFaults'))
const seed = Number(process.env.SLIPWAY_SEED)
const tenantCount = 8
/** Reached only on failure: minutes for the start and for settling, and seconds for each fault. */
const timeout = 600_000 + faultCount * 3_000
const settleMs = 60_000

test('the service keeps its promises through kills, hangs, network cuts and false results of engines', {
  timeout,
}, async () => {
  console.log(`chaos: seed ${seed}, ${faultCount} faults`)
  const history = new History()
  const cluster = await Cluster.start(history)
  onTestFinished(() => cluster.close())
  const evidence = await runTenants(cluster, history).finally(() => cluster.stopMembers())
  await checkAll(evidence)
  if (history.violations.length > 0) {
    const logs = join(root, 'artifacts', `chaos-${seed}`)
    cluster.writeLogs(logs)
    history.write(logs)
    console.log(`chaos: seed ${seed}, history near the violations (full history and all logs: ${logs})`)
    console.log(history.nearViolations())
  }
  expect(history.violations, `seed ${seed}`).toEqual([])
  console.log(`chaos: ${evidence.acknowledged.length} promises kept through ${faultCount} faults`)
  console.log(await countOutcomes(cluster))
})

/** Runs the tenants while the planned faults happen. Then all faults end and the system settles. */
async function runTenants(cluster: Cluster, history: History): Promise<Evidence> {
  const { project_id: projectId, access_key: token } = cluster.credentials
  const receiver = await startReceiver()
  const webhook = await createWebhook(cluster, receiver.url)
  receiver.answer = (received) => {
    try {
      verify(webhook.secret, received)
      return 204
    } catch (error) {
      history.violation(`a webhook has an invalid signature: ${(error as Error).message}`)
      return 400
    }
  }
  const service = { apiUrls: cluster.apiUrls, token, projectId, history }
  const clients = Array.from(
    { length: tenantCount },
    (_, i) => new Client(`tenant-${i + 1}`, seed + i, service),
  )
  const networks = await clients[0]!.get('/vpc/networks')
  const tenants = clients.map((client, i) => new Tenant(client, networks.body.items[0].id, seed + 1_000 + i))
  const stream = new StreamReader()
  stream.start(cluster, projectId, token, webhook.fromPosition)
  const watch = new EngineWatch()
  watch.start(cluster, history)

  let isOver = false
  const tenantsDone = Promise.all(tenants.map((tenant) => tenant.run(() => isOver)))
  await new Faults(cluster, history).run(planOf(seed, faultCount))
  isOver = true
  await tenantsDone
  history.note('all faults have ended')
  await cluster.untilReady()
  for (const left of await untilQuiet(cluster)) history.violation(`the system does not settle: ${left}`)
  const [last] = await cluster.sql<{ id: string }>(
    'SELECT id FROM events_written WHERE project_id = $1 ORDER BY position DESC LIMIT 1',
    [projectId],
  )
  await eventually(() => stream.eventIds.includes(last!.id), settleMs).catch(() => {})
  await Promise.all([stream.stop(), watch.stop()])
  expect(watch.samples, 'samples of GPUs with VMs').toBeGreaterThan(0)
  // Costs grow while they are read.
  await clockOf((text, values) => cluster.sql(text, values)).freeze()
  const costs = await clients[0]!.get('/costs')
  return {
    ...{ cluster, history, projectId, receiver, fromPosition: webhook.fromPosition },
    ...{ streamedIds: stream.eventIds, costs: costs.body },
    acknowledged: clients.flatMap(({ acknowledged }) => acknowledged),
  }
}

/** Creates a webhook, and returns its secret and the position where its events begin. */
async function createWebhook(
  cluster: Cluster,
  url: string,
): Promise<{ secret: string; fromPosition: number }> {
  const { email, password, project_id } = cluster.credentials
  const session = await post(cluster, '/auth/token', { grant_type: 'password', email, password }, '')
  const { secret } = await post(cluster, `/projects/${project_id}/webhooks`, { url }, session.access_token)
  const [webhook] = await cluster.sql<{ since_position: number }>('SELECT since_position FROM webhooks')
  return { secret, fromPosition: webhook!.since_position }
}

async function post(cluster: Cluster, path: string, body: unknown, token: string) {
  const response = await fetch(`${cluster.apiUrls[0]}/v0.1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(200)
  return response.json() as Promise<{ access_token: string; secret: string }>
}

/** Counts the operations of each kind by outcome. */
async function countOutcomes(cluster: Cluster): Promise<string> {
  const rows = await cluster.sql<{ outcome: string; count: number }>(
    `SELECT concat_ws(' ', kind, coalesce(result ->> 'code', state)) AS outcome, count(*)::int AS count
     FROM operations GROUP BY 1 ORDER BY 1`,
  )
  return rows.map(({ outcome, count }) => `${outcome}: ${count}`).join(', ')
}
