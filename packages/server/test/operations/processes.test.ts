import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { Launcher } from '@slipway/testing/launcher.ts'
import { freePort } from '@slipway/testing/port.ts'
import type { Program } from '@slipway/testing/program.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { Wire } from '@slipway/testing/wire.ts'
import { afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import { groupBody } from '../support/fleets/small-fleet.ts'

type OperationResponse = { operation: { operation_id: string; metadata: { id: string } } }

/** Longer than a lease, but shorter than the start of another worker. */
const pauseDuringMs = 3_000
let service: TestService
let resources: ReturnType<typeof resourcesOf>
const launcher = new Launcher()
const workers: Program[] = []

beforeAll(async () => {
  service = await startService((config) => {
    config.server.role = 'api'
    config.operations.leaseMs = 1_000
    config.operations.renewMs = 300
  })
  resources = resourcesOf(service)
  await settle(service)
  writeFileSync(
    join(service.dataDir, 'slipway.toml'),
    `[server]
log_level = "warn"
[operations]
lease_ms = 1000
renew_ms = 300
${simulatedLocation({ name: 'us-east1-a', publicIpv4: '198.18.0.0/18' })}
${simulatedLocation({ name: 'us-west1-a', publicIpv4: '198.18.64.0/18' })}
${simulatedLocation({ name: 'eu-north1-a', publicIpv4: '198.18.128.0/18' })}`,
  )
  return async () => {
    await launcher.clear()
    await service.close()
  }
})

afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.end('SIGKILL')
  await service.simulator().clearFaults()
})

/** Starts a separate worker process. It is ready when it has a listening connection. */
async function startWorker(env: Record<string, string> = {}): Promise<Program> {
  const before = await listeners()
  const file = join(service.dataDir, 'slipway.toml')
  const args = ['--role', 'worker', '--config', file, '--data-dir', service.dataDir]
  const worker = launcher.start(args, { env: { DATABASE_URL: service.databaseUrl, ...env } })
  workers.push(worker)
  await eventually(async () => {
    if (worker.hasExited) throw new Error(`the worker exited: ${(await worker.ended()).errors}`)
    // Some earlier operations may still be leased by the dead worker.
    return (await listeners()).some((pid) => !before.includes(pid))
  })
  return worker
}
const listeners = async () => {
  const rows = await service.sql<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'slipway-signals%'`,
  )
  return rows.map(({ pid }) => pid)
}
const rowOf = async (id: string) =>
  (
    await service.sql<{ state: string; lease_token: string | null; was: string }>(
      `SELECT o.state, q.lease_token, to_jsonb(o)::text AS was
       FROM operations o LEFT JOIN operation_queue q ON q.operation_id = o.id WHERE o.id = $1`,
      [id],
    )
  )[0]!

/**
 * Starts a creation that hangs in its worker, even if the worker loses its lease on a busy machine and claims the
 * operation again. The fault is set before the worker looks for work.
 */
async function beginCreation(
  delayMs = pauseDuringMs,
  create: () => Promise<OperationResponse> = () => resources.createVm(),
) {
  const times = 1_000
  await service.simulator().addFault({ method: 'ensureVm', kind: 'delay', delayMs, times })
  const worker = await startWorker()
  const { operation } = await create()
  await eventually(async () => {
    const [taken] = await service.sql('SELECT FROM simulated_faults WHERE remaining < $1', [times])
    return taken
  })
  return { worker, operation }
}
/** Starts a worker that does not hang. */
const startSuccessor = async () => {
  await service.simulator().clearFaults()
  return startWorker()
}
const endSuccessfully = async (operation: { operation_id: string; metadata: { id: string } }) => {
  expect(await service.ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await resources.stateOf(operation.metadata.id)).toBe('STATE_RUNNING')
  await settle(service)
  await checkInvariants(service)
}

test('a worker that was paused past its lease changes nothing when it resumes', async () => {
  const { worker, operation } = await beginCreation()
  worker.signal('SIGSTOP')
  const successor = await startSuccessor()
  await endSuccessfully(operation)
  const engine = () =>
    service.sql('SELECT to_jsonb(v)::text AS was FROM simulated_vms v WHERE id = $1', [operation.metadata.id])
  const before = [await rowOf(operation.operation_id), await engine()]
  await successor.end('SIGKILL')
  worker.signal('SIGCONT')
  // The engine call of the worker became due during the pause. There is no other worker, so when a new operation
  // succeeds, this worker has also made that call.
  await resources.newDisk()
  await resources.newDisk()
  expect([await rowOf(operation.operation_id), await engine()]).toEqual(before)
  await checkInvariants(service)
})

test('the work of a killed worker is continued by another', async () => {
  const { worker, operation } = await beginCreation(600_000)
  await worker.end('SIGKILL')
  expect((await rowOf(operation.operation_id)).state).toBe('IN_PROGRESS')
  await startSuccessor()
  await endSuccessfully(operation)
})

test('a group whose worker is killed before all members respond is completed by another', async () => {
  const begin = () => service.ok('instanceGroupCreate', { body: groupBody(3) })
  const { worker, operation } = await beginCreation(600_000, begin)
  await worker.end('SIGKILL')
  const params = { instance_group_id: operation.metadata.id }
  expect(await service.ok('instanceGroupGet', { params })).toMatchObject({ running_instance_count: 0 })
  await startSuccessor()
  expect(await service.ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  const { items } = await service.ok('vmList')
  const members = items.filter((vm) => vm.instance_group_id === params.instance_group_id)
  expect(members.map(({ state }) => state)).toEqual(Array(3).fill('STATE_RUNNING'))
  expect(new Set(members.map(({ started_at }) => started_at)).size).toBe(1)
  await settle(service)
  await checkInvariants(service)
})

test('a worker that gets SIGTERM releases its operations and exits in time', async () => {
  const { worker, operation } = await beginCreation()
  const code = await Promise.race([
    worker.end('SIGTERM'),
    new Promise((resolve) => setTimeout(() => resolve('too late'), 12_000).unref()),
  ])
  expect(code).toBe(0)
  const row = await rowOf(operation.operation_id)
  expect(row.lease_token).toBeNull()
  if (row.state === 'IN_PROGRESS') await startSuccessor()
  await endSuccessfully(operation)
})

test('a worker whose connections are all cut at the same time keeps running and continues', async () => {
  const wire = new Wire(service.databaseUrl)
  await wire.restore()
  onTestFinished(() => wire.cut())
  const worker = await startWorker({ DATABASE_URL: wire.url })
  // A worker that runs operations has finished starting.
  await resources.newDisk()
  await wire.cut()
  await eventually(async () => (await listeners()).length === 1)
  await wire.restore()
  await resources.newDisk()
  expect(worker.hasExited).toBe(false)
})

test('a worker serves only health, readiness and metrics, on loopback', async () => {
  const port = await freePort()
  await startWorker({ SLIPWAY_WORKER_PORT: String(port) })
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: response.status, text: await response.text() }
  }
  await eventually(() => ask('/healthz').catch(() => null))
  expect(await ask('/healthz')).toEqual({ status: 200, text: '{"status":"ok"}' })
  const ready = await eventually(async () => {
    const body = JSON.parse((await ask('/readyz')).text)
    return body.engines[0].is_answering && body
  })
  expect(ready).toMatchObject({ status: 'ready', engines: [{ location: 'us-east1-a' }, {}, {}] })
  expect((await ask('/metrics')).text).toMatch(/^slipway_operations_in_progress \d/m)
  expect((await ask('/v0.1')).status).toBe(404)
})
