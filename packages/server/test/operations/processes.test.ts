import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { eventually, startService, type TestService } from '../harness.ts'
import { checkInvariants, settle } from '../invariants.ts'
import { thingsOf } from './things.ts'

const root = join(import.meta.dirname, '../..')
const main = join(root, 'dist/main-under-test.js')
/** Longer than a lease, so that whoever is in the middle stays there until the test has done its part. */
const inTheMiddleMs = 3_000
let service: TestService
let things: ReturnType<typeof thingsOf>
const workers: ChildProcess[] = []

beforeAll(async () => {
  await bundle()
  service = await startService((config) => {
    config.server.role = 'api'
    config.operations.leaseMs = 1_000
    config.operations.renewMs = 300
  })
  things = thingsOf(service)
  await settle(service)
  writeFileSync(
    join(service.dataDir, 'slipway.toml'),
    `[server]
log_level = "warn"
[operations]
lease_ms = 1000
renew_ms = 300
${['us-east1-a 198.18.0.0/18', 'us-west1-a 198.18.64.0/18', 'eu-north1-a 198.18.128.0/18']
  .map((line) => line.split(' '))
  .map(
    ([name, pool]) =>
      `[[location]]\nname = "${name}"\nengine = "simulated"\npublic_ipv4 = "${pool}"\n[location.simulated]\nboot_ms = 0\nquarantine_ms = 0\n`,
  )
  .join('')}`,
  )
  return () => service.close()
}, 120_000)

afterEach(async () => {
  for (const worker of workers.splice(0)) {
    if (worker.exitCode !== null || worker.signalCode !== null) continue
    worker.kill('SIGKILL')
    await once(worker, 'exit')
  }
})

/** As the start script does it: npm packages stay outside, our own become part of the file. */
const bundle = () =>
  build({
    entryPoints: [join(root, 'src/main.ts')],
    outfile: main,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
    plugins: [
      {
        name: 'packages-stay-outside',
        setup: ({ onResolve }) =>
          onResolve({ filter: /^[^./#]/ }, ({ path, kind }) =>
            kind === 'entry-point' || path.startsWith('@slipway/') ? null : { path, external: true },
          ),
      },
    ],
  })

/** A worker process of its own, ready when it holds a connection that listens. */
async function startWorker(): Promise<ChildProcess> {
  const before = await listeners()
  const file = join(service.dataDir, 'slipway.toml')
  const args = [main, '--role', 'worker', '--config', file, '--data-dir', service.dataDir]
  const worker = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, DATABASE_URL: service.databaseUrl },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  workers.push(worker)
  let complaint = ''
  worker.stderr!.on('data', (chunk) => {
    complaint += chunk
  })
  await eventually(async () => {
    if (worker.exitCode !== null) throw new Error(`the worker left: ${complaint}`)
    // Of those before it, some may not have noticed yet that their worker has gone.
    return (await listeners()).some((pid) => !before.includes(pid))
  }, 30_000)
  return worker
}
const listeners = async () => {
  const rows = await service.sql<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'slipway-signals'`,
  )
  return rows.map(({ pid }) => pid)
}
const rowOf = async (id: string) =>
  (
    await service.sql<{ state: string; lease_token: string | null; was: string }>(
      `SELECT state, lease_token, to_jsonb(operations)::text AS was FROM operations WHERE id = $1`,
      [id],
    )
  )[0]!

/** Begins a creation that its worker hangs in: the fault is there before the worker has looked. */
async function beginCreation() {
  await service.simulator().addFault({ method: 'ensureVm', kind: 'delay', delayMs: inTheMiddleMs })
  const worker = await startWorker()
  const { operation } = await things.createVm()
  await eventually(async () => {
    const [left] = await service.sql('SELECT FROM simulated_faults WHERE remaining > 0')
    return !left
  })
  return { worker, operation }
}
const endWell = async (operation: { operation_id: string; metadata: { id: string } }) => {
  expect(await service.ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  expect(await things.stateOf(operation.metadata.id)).toBe('STATE_RUNNING')
  await settle(service)
  await checkInvariants(service)
}

it('a worker that was stopped past its lease changes nothing when it wakes up', async () => {
  const { worker, operation } = await beginCreation()
  worker.kill('SIGSTOP')
  const successor = await startWorker()
  await endWell(operation)
  const engine = () =>
    service.sql('SELECT to_jsonb(v)::text AS was FROM simulated_vms v WHERE id = $1', [operation.metadata.id])
  const before = [await rowOf(operation.operation_id), await engine()]
  successor.kill('SIGKILL')
  await once(successor, 'exit')
  worker.kill('SIGCONT')
  // Its engine call was due while it slept. Nobody else is left: what succeeds now, it did after that call.
  await things.newDisk()
  await things.newDisk()
  expect([await rowOf(operation.operation_id), await engine()]).toEqual(before)
  await checkInvariants(service)
})

it('a worker that is killed in the middle is succeeded by another', async () => {
  const { worker, operation } = await beginCreation()
  worker.kill('SIGKILL')
  await once(worker, 'exit')
  expect((await rowOf(operation.operation_id)).state).toBe('IN_PROGRESS')
  await startWorker()
  await endWell(operation)
})

it('a worker that is asked to leave hands its work back and goes in time', async () => {
  const { worker, operation } = await beginCreation()
  const exit = once(worker, 'exit')
  worker.kill('SIGTERM')
  const [code] = await Promise.race([
    exit,
    new Promise<[string]>((resolve) => setTimeout(() => resolve(['too late']), 12_000).unref()),
  ])
  expect(code).toBe(0)
  const row = await rowOf(operation.operation_id)
  expect(row.lease_token).toBeNull()
  if (row.state === 'IN_PROGRESS') await startWorker()
  await endWell(operation)
})
