import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { Launcher, queryDataDir } from '@slipway/testing/launcher.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { afterAll, expect, test } from 'vitest'
import { openEmbedded } from '../../src/postgres/embedded/index.ts'
import { BackedUpServer } from '../support/postgres/backed-up-server.ts'

const launcher = new Launcher()
afterAll(() => launcher.clear())

const models = ['A100 40GB PCIe']
const locations = simulatedLocation({ name: 'us-east1-a', publicIpv4: '198.18.0.0/18', models })
const dataDir = launcher.newDataDir()
const backups = join(launcher.dir, 'backups')
const server = new BackedUpServer(launcher, dataDir)

/** Reads the tables that represent the hosts of the simulated engine. A real restore would not change hosts. */
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
  await server.start(locations)
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
  const backup = await server.command('backup', '--to', backups)
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

  const examined = await server.command('doctor', '--config', server.configFile)
  expect([examined.code, examined.errors]).toEqual([0, ''])
  expect(examined.output).toMatch(/^ok +database +embedded PostgreSQL \d+$/m)
  expect(examined.output).toMatch(/^ok +secret key .* matches the database/m)

  // A restore is refused while a server uses the database.
  const refused = await server.command('restore', path)
  expect([refused.code, refused.errors]).toEqual([1, expect.stringContaining('stop it before you restore')])

  await server.act(stopped, 'STOP')
  await server.deleteVm(deleted)
  const created = await server.createVm('created')
  const engine = await readEngine()
  await server.stop()

  const restored = await server.command('restore', path)
  expect([restored.code, restored.errors]).toEqual([0, ''])
  expect(restored.output).toContain('[operations] restored = true')
  await writeEngine(engine)

  await server.start(`[operations]\nrestored = true\n${locations}`)
  const { body } = await server.inProject('GET', '/vms')
  const vms = (body as unknown as { items: { id: string; labels: Record<string, string> }[] }).items
  expect(vms.map(({ id }) => id).toSorted()).toEqual([kept, stopped, deleted].toSorted())
  const step = Number(vms.find(({ id }) => id === kept)!.labels.step)
  expect(step).toBeGreaterThanOrEqual(before)

  await eventually(async () => (await server.stateOf(stopped)) === 'STATE_CRASHED')
  await server.act(stopped, 'STOP')
  await server.act(stopped, 'START')
  await server.deleteVm(deleted)
  expect(await server.stateOf(kept)).toBe('STATE_RUNNING')
  await server.program.until(new RegExp(`${created}.*unknown object`))
  await server.stop()
}, 240_000)

test('old backups are removed only after a new one is complete, and an incomplete backup is not restored', async () => {
  const [first] = readdirSync(backups)
  const second = await server.command('backup', '--to', backups, '--keep', '1')
  expect([second.code, second.errors]).toEqual([0, ''])
  expect(second.output).toContain(`${join(backups, first!)}: removed\n`)
  const [left, ...more] = readdirSync(backups)
  expect(more).toEqual([])

  rmSync(join(backups, left!, 'backup.json'))
  const restored = await server.command('restore', join(backups, left!))
  expect([restored.code, restored.errors]).toEqual([1, expect.stringContaining('is not a complete backup')])

  const external = await launcher
    .start(['backup', '--to', backups], { env: { DATABASE_URL: 'postgresql://example/db' } })
    .ended()
  expect([external.code, external.errors]).toEqual([2, expect.stringContaining('pg_basebackup')])
  expect(existsSync(join(backups, left!))).toBe(true)
})

test('a backup without a destination or with a bad number is refused', async () => {
  expect((await server.command('backup')).errors).toContain('--to is required')
  expect((await server.command('backup', '--to', backups, '--keep', '0')).errors).toContain('--keep 0')
})
