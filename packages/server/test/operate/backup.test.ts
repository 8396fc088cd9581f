import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { credentialsOf, Launcher, queryDataDir, readyLine } from '@slipway/testing/launcher.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { afterAll, expect, test } from 'vitest'
import { openEmbedded } from '../../src/postgres/embedded/index.ts'

const launcher = new Launcher()
afterAll(() => launcher.clear())

const models = ['A100 40GB PCIe']
const locations = simulatedLocation({ name: 'us-east1-a', publicIpv4: '198.18.0.0/18', models })
const dataDir = launcher.newDataDir()
const configFile = join(launcher.dir, 'slipway.toml')
const backups = join(launcher.dir, 'backups')

const command = (...args: string[]) => launcher.start([...args, '--data-dir', dataDir]).ended()

async function startServer(config: string) {
  writeFileSync(configFile, config)
  const program = launcher.start(['--port', '0', '--data-dir', dataDir, '--config', configFile])
  await program.until(readyLine)
  const { api_url, access_key, project_id } = credentialsOf(dataDir)
  const inProject = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${api_url}/v0.1/projects/${project_id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${access_key}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  /** Waits for the end of the operation that a request begins. Returns the id of its VM. */
  const done = async (request: Promise<{ status: number; body: Record<string, unknown> }>) => {
    const { status, body } = await request
    expect([status, body]).toEqual([200, expect.anything()])
    const { operation_id, metadata } = body.operation as { operation_id: string; metadata: { id: string } }
    await eventually(async () => {
      const operation = (await inProject('GET', `/operations/${operation_id}?wait=20`)).body as {
        state?: string
      }
      expect(operation.state).not.toBe('FAILED')
      return operation.state === 'SUCCEEDED'
    })
    return metadata.id
  }
  const createVm = (name: string) => done(inProject('POST', '/vms', vmBody({ name })))
  const act = (id: string, action: string) => done(inProject('PATCH', `/vms/${id}`, { action }))
  const stateOf = async (id: string) => {
    const { body } = await inProject('GET', `/vms/${id}`)
    return (body as { state?: string }).state
  }
  return { program, inProject, done, createVm, act, stateOf }
}

/** The tables that stand for the hosts of the simulated engine, which a restore of the database does not change. */
async function readEngine(): Promise<Map<string, string>> {
  const tables = await queryDataDir<{ name: string }>(
    dataDir,
    `SELECT tablename AS name FROM pg_tables WHERE tablename LIKE 'simulated\\_%'`,
  )
  const contents = new Map<string, string>()
  for (const { name } of tables) {
    const [row] = await queryDataDir<{ rows: string }>(
      dataDir,
      `SELECT coalesce(json_agg(t), '[]')::text AS rows FROM ${name} t`,
    )
    contents.set(name, row!.rows)
  }
  return contents
}

async function writeEngine(contents: Map<string, string>): Promise<void> {
  const embedded = await openEmbedded({ dataDir, log: () => {} })
  const url = `${embedded.superuserUrl}?options=-c%20session_replication_role%3Dreplica`
  for (const [name, rows] of contents) {
    await query(url, `DELETE FROM ${name}`)
    await query(
      url,
      `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${name}, $1)`,
      [rows],
    )
  }
  await embedded.stop()
}

test('a backup of the running service is restored, and VMs that changed afterwards can be changed again', async () => {
  const server = await startServer(locations)
  const [kept, stopped, deleted] = [
    await server.createVm('kept'),
    await server.createVm('stopped'),
    await server.createVm('deleted'),
  ]

  // Rows are written before, during and after the backup.
  let written = 0
  let isOver = false
  const writing = (async () => {
    while (!isOver) {
      const { status } = await server.inProject('PATCH', `/vms/${kept}`, {
        labels: { step: String(written + 1) },
      })
      expect(status).toBe(200)
      written++
    }
  })()
  await eventually(() => written > 5)
  const before = written
  const backup = await command('backup', '--to', backups)
  isOver = true
  await writing
  expect([backup.code, backup.errors]).toEqual([0, ''])
  const [name] = readdirSync(backups)
  const path = join(backups, name!)
  expect(backup.output).toMatch(
    /: \d+ rows, schema \d+\. Verified: .* restored to a temporary database and read completely\.\n$/,
  )
  expect(backup.output).toContain(path)
  expect(written).toBeGreaterThan(before)

  const examined = await command('doctor', '--config', configFile)
  expect([examined.code, examined.errors]).toEqual([0, ''])
  expect(examined.output).toMatch(/^ok +database +embedded PostgreSQL \d+$/m)
  expect(examined.output).toMatch(/^ok +secret key .* fits the database/m)

  // A server uses the database.
  const refused = await command('restore', path)
  expect([refused.code, refused.errors]).toEqual([1, expect.stringContaining('stop it before you restore')])

  await server.act(stopped, 'STOP')
  await server.done(server.inProject('DELETE', `/vms/${deleted}`))
  const created = await server.createVm('created')
  const engine = await readEngine()
  expect(await server.program.end('SIGTERM')).toBe(0)

  const restored = await command('restore', path)
  expect([restored.code, restored.errors]).toEqual([0, ''])
  expect(restored.output).toContain('[operations] restored = true')
  await writeEngine(engine)

  const again = await startServer(`[operations]\nrestored = true\n${locations}`)
  const { body } = await again.inProject('GET', '/vms')
  const vms = (body as unknown as { items: { id: string; labels: Record<string, string> }[] }).items
  expect(vms.map(({ id }) => id).toSorted()).toEqual([kept, stopped, deleted].toSorted())
  const step = Number(vms.find(({ id }) => id === kept)!.labels.step)
  expect(step).toBeGreaterThanOrEqual(before)

  await eventually(async () => (await again.stateOf(stopped)) === 'STATE_CRASHED')
  await again.act(stopped, 'STOP')
  await again.act(stopped, 'START')
  await again.done(again.inProject('DELETE', `/vms/${deleted}`))
  expect(await again.stateOf(kept)).toBe('STATE_RUNNING')
  await again.program.until(new RegExp(`${created}.*unknown object`))
  expect(await again.program.end('SIGTERM')).toBe(0)
}, 240_000)

test('old backups are removed only after a new one is complete, and an incomplete backup is not restored', async () => {
  const [first] = readdirSync(backups)
  const second = await command('backup', '--to', backups, '--keep', '1')
  expect([second.code, second.errors]).toEqual([0, ''])
  expect(second.output).toContain(`${join(backups, first!)}: removed\n`)
  const [left, ...more] = readdirSync(backups)
  expect(more).toEqual([])

  rmSync(join(backups, left!, 'backup.json'))
  const restored = await command('restore', join(backups, left!))
  expect([restored.code, restored.errors]).toEqual([1, expect.stringContaining('is not a complete backup')])

  const external = await launcher
    .start(['backup', '--to', backups], { env: { DATABASE_URL: 'postgresql://example/db' } })
    .ended()
  expect([external.code, external.errors]).toEqual([2, expect.stringContaining('pg_basebackup')])
  expect(existsSync(join(backups, left!))).toBe(true)
})

test('a backup without a destination or with a bad number is refused', async () => {
  expect((await command('backup')).errors).toContain('--to is required')
  expect((await command('backup', '--to', backups, '--keep', '0')).errors).toContain('--keep 0')
})
