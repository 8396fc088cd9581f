import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { credentialsOf, Launcher, readyLine } from '@slipway/testing/launcher.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { afterAll, expect, test } from 'vitest'
import { DebianServer, debianPostgres } from '../support/postgres/replicated.ts'

const launcher = new Launcher()
const servers: DebianServer[] = []
afterAll(async () => {
  for (const server of servers) server.kill()
  await launcher.clear()
})

/** The service must accept requests again this long after the promotion. */
const failoverMs = 30_000
const writerCount = 4

async function startPair(): Promise<[primary: DebianServer, standby: DebianServer]> {
  const primary = await DebianServer.create(join(launcher.dir, 'primary'))
  servers.push(primary)
  const standby = await DebianServer.createStandby(join(launcher.dir, 'standby'), primary)
  servers.push(standby)
  await query(primary.urlOf(), `ALTER SYSTEM SET synchronous_standby_names = '*'`)
  await query(primary.urlOf(), 'SELECT pg_reload_conf()')
  await eventually(async () => {
    const [row] = await query<{ sync_state: string }>(
      primary.urlOf(),
      'SELECT sync_state FROM pg_stat_replication',
    )
    return row?.sync_state === 'sync'
  })
  return [primary, standby]
}

/** Starts an API and a worker that are configured with both servers, the standby first. */
async function startService(urls: string[]) {
  const dataDir = launcher.newDataDir()
  const config = join(launcher.dir, 'slipway.toml')
  const models = ['A100 40GB PCIe']
  const location = { name: 'us-east1-a', publicIpv4: '198.18.0.0/18', models, hostsPerModel: 20 }
  writeFileSync(config, `[database]\nurls = ${JSON.stringify(urls)}\n${simulatedLocation(location)}`)
  const args = ['--port', '0', '--data-dir', dataDir, '--config', config]
  const api = launcher.start([...args, '--role', 'all'])
  await api.until(readyLine)
  const worker = launcher.start([...args, '--role', 'worker'])
  await worker.until(readyLine)
  return { api, worker, credentials: credentialsOf(dataDir) }
}

test.skipIf(!debianPostgres)(
  'when the primary dies under load and a synchronous standby is promoted, the service continues and no accepted operation is lost',
  async () => {
    const [primary, standby] = await startPair()
    const { api, worker, credentials } = await startService([standby.urlOf(), primary.urlOf()])
    const { api_url, access_key, project_id } = credentials

    /** Returns null if the service is unavailable or the outcome is unknown. */
    const call = async (method: string, path: string, body?: object, key?: string) => {
      const response = await fetch(`${api_url}/v0.1/projects/${project_id}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${access_key}`,
          ...(body && { 'content-type': 'application/json' }),
          ...(key && { 'idempotency-key': key }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      const result = (await response.json()) as { state?: string; operation?: Accepted }
      if (response.status === 503) return null
      expect([response.status, result]).toEqual([200, expect.anything()])
      return result
    }
    interface Accepted {
      operation_id: string
      metadata: { id: string }
    }
    const accepted: string[] = []
    /** Sends a request until it is accepted, as clients do: always with the same key. */
    const submit = async (method: string, path: string, body?: object): Promise<Accepted> => {
      const key = randomUUID()
      const result = await eventually(() => call(method, path, body, key))
      accepted.push(result.operation!.operation_id)
      return result.operation!
    }
    const ended = (id: string) =>
      eventually(async () => {
        const found = await call('GET', `/operations/${id}?wait=10`)
        return found && found.state !== 'IN_PROGRESS' && found
      })
    let isOver = false
    const write = async () => {
      while (!isOver) {
        const { operation_id, metadata } = await submit('POST', '/vms', vmBody())
        await ended(operation_id)
        await submit('DELETE', `/vms/${metadata.id}`)
      }
    }
    const writers = Array.from({ length: writerCount }, write)
    await eventually(() => accepted.length > 40)

    primary.kill()
    standby.promote()
    const before = accepted.length
    await eventually(() => accepted.length > before + 2 * writerCount, failoverMs)
    await eventually(() => accepted.length > before + 40)
    isOver = true
    await Promise.all(writers)

    expect(new Set(accepted).size).toBe(accepted.length)
    const states = await Promise.all(accepted.map(async (id) => (await ended(id)).state))
    expect(states).toEqual(accepted.map(() => 'SUCCEEDED'))
    for (const program of [api, worker]) expect(await program.end('SIGTERM')).toBe(0)
  },
)
