import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '@slipway/testing/eventually.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ClusterWithAgents } from '../../support/incus/agent-stand-in.ts'
import { incusConfig } from '../../support/incus/config.ts'

const location = 'gpu-a'
/** With this delay, the pause between two inspections is the longest one. */
const delayMs = 1_200
let dir: string
let incus: ClusterWithAgents
let service: TestService
let statusOfLast = 'Online'

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'swi-'))
  incus = await new ClusterWithAgents(['m1', 'm2', 'm3']).open(join(dir, 'socket'))
  const members = incus.recorded.get('/1.0/cluster/members') as () => { server_name: string }[]
  incus.recorded.set('/1.0/cluster/members', async () => {
    await sleep(delayMs)
    return members().map((one) => (one.server_name === 'm3' ? { ...one, status: statusOfLast } : one))
  })
  const resources = incus.recorded.get('/1.0/resources')
  incus.recorded.set('/1.0/resources', ({ query }: { query: URLSearchParams }) =>
    query.get('target') === 'm3' && statusOfLast !== 'Online' ? undefined : resources,
  )
  service = await startService((config) => {
    const base = { description: '', engine: 'incus', storage: 'local', publicIpv4: '' } as const
    const place = { ...base, name: location, incus: incusConfig({ socket: join(dir, 'socket') }) }
    config.locations = [...config.locations.slice(0, 1), place]
  })
})
afterAll(async () => {
  await service?.close()
  await incus?.close()
  await rm(dir, { recursive: true })
})

async function stateOfLast(): Promise<string | undefined> {
  const token = service.credentials.operator_key
  const { items } = await service.ok('adminHostList', { token, query: { location } })
  return items.find(({ name }) => name === 'm3')?.state
}

/** Returns the number of inspections, and for how long the current or the next one is reserved. */
async function turn(): Promise<{ inspections: number; reservedMs: number }> {
  const [row] = await service.sql<{ inspections: number; reservedMs: number }>(
    `SELECT l.inspections::integer,
            (extract(epoch FROM t.until - slipway_now()) * 1000)::float8 AS "reservedMs"
     FROM locations l JOIN leases t ON t.name = 'reports ' || l.name WHERE l.name = $1`,
    [location],
  )
  return row!
}

test('while a member is down, slow inspections do not make the pauses longer, so that its return is noticed soon', async () => {
  await eventually(async () => (await stateOfLast()) === 'up')
  statusOfLast = 'Offline'
  await eventually(async () => (await stateOfLast()) === 'down')
  const { inspections: before } = await turn()
  // Waits for the end of the inspection in which the member was lost.
  await eventually(async () => (await turn()).inspections > before)
  let longestMs = 0
  await eventually(async () => {
    const { inspections, reservedMs } = await turn()
    longestMs = Math.max(longestMs, reservedMs)
    return inspections > before + 2
  })
  // A running inspection has a lease, which is renewed; a pause is shorter than that.
  expect(longestMs).toBeLessThanOrEqual(service.config.operations.leaseMs)
  statusOfLast = 'Online'
  await eventually(async () => (await stateOfLast()) === 'up')
})
