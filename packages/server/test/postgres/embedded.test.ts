import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import {
  homeOf,
  killAndWait,
  pidFileOf,
  postmasterPid,
  socketDirOf,
  stateOf,
} from '@slipway/testing/postgres/postmaster.ts'
import { countOf } from '@slipway/testing/setup/counts.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EmbeddedError, openEmbedded } from '../../src/postgres/embedded/index.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { EmbeddedBench } from '../support/embedded-bench.ts'

const isRoot = process.getuid?.() === 0
const NOBODY = 65534
const bench = new EmbeddedBench()
const quiet = () => {}
const kills = countOf('kills')

beforeAll(() => bench.prepare())
afterAll(() => bench.launcher.clear())

const dataDir = bench.launcher.newDataDir('one')

test('a server starts PostgreSQL with durable writes, reachable only by socket and password', async () => {
  const embedded = await openEmbedded({ dataDir, log: quiet })
  const [row] = await query(
    embedded.url,
    `SELECT current_setting('fsync') AS fsync, current_setting('listen_addresses') AS tcp,
              current_setting('data_checksums') AS checksums, current_database() AS database`,
  )
  expect(row).toEqual({ fsync: 'on', tcp: '', checksums: 'on', database: 'slipway' })
  await expect(query(embedded.url.replace(/:\w+@/, ':wrong@'), 'SELECT 1')).rejects.toThrow(/password/)
  expect(statSync(join(dataDir, 'postgres-password')).mode & 0o777).toBe(0o600)
  await embedded.stop()
  expect(postmasterPid(dataDir)).toBeUndefined()
})

test('a server finds its rows again at the next start', async () => {
  const first = await openEmbedded({ dataDir, log: quiet })
  await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer')
  await first.stop()
  const second = await openEmbedded({ dataDir, log: quiet })
  expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  await second.stop()
})

test('a copy of the data of a stopped server is an independent database', async () => {
  const copy = bench.launcher.newDataDir('copy')
  execFileSync('cp', ['-a', `${dataDir}/.`, copy])
  const [first, second] = [
    await openEmbedded({ dataDir, log: quiet }),
    await openEmbedded({ dataDir: copy, log: quiet }),
  ]
  expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  await query(second.url, 'UPDATE kept SET answer = 43')
  expect(await query(first.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  await first.stop()
  await second.stop()
})

test('the service is not a superuser, so it cannot run programs or read files through SQL', async () => {
  const embedded = await openEmbedded({ dataDir, log: quiet })
  expect(await query(embedded.url, 'SELECT rolsuper FROM pg_roles WHERE rolname = current_user')).toEqual([
    { rolsuper: false },
  ])
  for (const attack of [
    `COPY (SELECT 1) TO PROGRAM 'true'`,
    `SELECT pg_read_file('/etc/passwd')`,
    `ALTER ROLE ${new URL(embedded.url).username} SUPERUSER`,
  ])
    await expect(query(embedded.url, attack)).rejects.toThrow(/permission denied|must be|only roles/i)
  await embedded.stop()
})

test('a database created by a superuser belongs to the service after the next start, with its rows', async () => {
  const oldDir = bench.launcher.newDataDir('old')
  const before = await openEmbedded({ dataDir: oldDir, log: quiet })
  const elsewhere = before.superuserUrl.replace(/slipway$/, 'postgres')
  for (const text of [
    'DROP DATABASE slipway',
    `DROP ROLE ${new URL(before.url).username}`,
    'CREATE DATABASE slipway',
  ])
    await query(elsewhere, text)
  await migrate(before.superuserUrl)
  await query(before.superuserUrl, `INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'Kept')`)
  await before.stop()

  const after = await openEmbedded({ dataDir: oldDir, log: quiet })
  await migrate(after.url)
  expect(await query(after.url, 'SELECT name FROM organizations')).toEqual([{ name: 'Kept' }])
  expect(
    await query(
      after.url,
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tableowner <> current_user
       UNION ALL SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND sequenceowner <> current_user
       UNION ALL SELECT proname FROM pg_proc p WHERE proowner <> current_user::regrole AND pronamespace = 'public'::regnamespace
         AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')`,
    ),
  ).toEqual([])
  await query(after.url, 'ALTER TABLE organizations ADD COLUMN later text')
  await after.stop()
})

test('a server passes settings on to PostgreSQL', async () => {
  const embedded = await openEmbedded({ dataDir, log: quiet, settings: { fsync: 'off' } })
  expect(await query(embedded.url, 'SHOW fsync')).toEqual([{ fsync: 'off' }])
  await embedded.stop()
})

test('a server runs PostgreSQL in a separate session, out of reach of Ctrl-C', async () => {
  const server = bench.run(dataDir)
  await server.line('ready')
  const pid = postmasterPid(dataDir)!
  const [, , , , group, session] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')
  expect([Number(group), Number(session)]).toEqual([pid, pid])
  expect(await server.end('SIGTERM')).toBe(0)
})

test('a server restarts PostgreSQL when it is killed', async () => {
  const lines: string[] = []
  const embedded = await openEmbedded({ dataDir, log: (line) => lines.push(line) })
  await killAndWait(postmasterPid(dataDir)!, 'SIGKILL')
  await eventually(() => lines.includes('PostgreSQL is running again'))
  expect(await query(embedded.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  await embedded.stop()
  expect(postmasterPid(dataDir)).toBeUndefined()
})

test('a server restarts PostgreSQL when its socket is deleted', async () => {
  const lines: string[] = []
  const embedded = await openEmbedded({ dataDir, log: (line) => lines.push(line) })
  rmSync(socketDirOf(dataDir), { recursive: true })
  await eventually(() => lines.includes('PostgreSQL is running again'))
  expect(await query(embedded.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  await embedded.stop()
})

test('a server starts PostgreSQL if the recorded pid belongs to another process', async () => {
  writeFileSync(pidFileOf(dataDir), `${process.pid}\n${join(homeOf(dataDir)!, 'data')}\n1\n5432\n/tmp\n\n`)
  const embedded = await openEmbedded({ dataDir, log: quiet })
  expect(await query(embedded.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }])
  await embedded.stop()
})

test('a server rejects the data of another PostgreSQL version with a one-line error', async () => {
  const versionFile = join(homeOf(dataDir)!, 'data/PG_VERSION')
  const version = readFileSync(versionFile, 'utf8')
  writeFileSync(versionFile, '15\n')
  const failure = await openEmbedded({ dataDir, log: quiet }).catch((error) => error)
  writeFileSync(versionFile, version)
  expect(failure).toBeInstanceOf(EmbeddedError)
  expect(failure.message).toMatch(/written by PostgreSQL 15, but this is PostgreSQL \d+$/)
})

test('a server reports in one line why PostgreSQL did not start', async () => {
  const failure = await openEmbedded({ dataDir, log: quiet, settings: { max_connections: 'many' } }).catch(
    (error) => error,
  )
  expect(failure).toBeInstanceOf(EmbeddedError)
  expect(failure.message).toMatch(/^PostgreSQL did not start: .*"max_connections".*$/)
})

const sharedDir = bench.launcher.newDataDir('several')

test('several servers on one data directory share one PostgreSQL, and the last to stop ends it', async () => {
  const servers = [bench.run(sharedDir), bench.run(sharedDir), bench.run(sharedDir)]
  const startTimes = await Promise.all(servers.map((server) => server.line('ready')))
  expect(new Set(startTimes).size).toBe(1)
  const pid = postmasterPid(sharedDir)
  for (const server of servers.slice(1)) expect(await server.end('SIGTERM')).toBe(0)
  expect(postmasterPid(sharedDir)).toBe(pid)
  expect(await servers[0]!.end('SIGTERM')).toBe(0)
  expect(postmasterPid(sharedDir)).toBeUndefined()
})

test('a killed server does not count among several servers on one data directory', async () => {
  const killed = bench.run(sharedDir)
  const startTime = await killed.line('ready')
  await killed.end('SIGKILL')
  const next = bench.run(sharedDir)
  expect(await next.line('ready')).toBe(startTime)
  expect(await next.end('SIGTERM')).toBe(0)
  expect(postmasterPid(sharedDir)).toBeUndefined()
})

test('PostgreSQL always works for a server while others on its data directory start and stop', async () => {
  const visit = async () => {
    const embedded = await openEmbedded({ dataDir: sharedDir, log: quiet, settings: { fsync: 'off' } })
    expect(await query(embedded.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    await embedded.stop()
  }
  const guest = async () => {
    for (let visits = 0; visits < 8; visits++) await visit()
  }
  await Promise.all([guest(), guest(), guest()])
  expect(postmasterPid(sharedDir)).toBeUndefined()
})

test('several servers on one data directory treat a zombie postmaster as dead', async () => {
  const parent = bench.run(sharedDir)
  const startTime = await parent.line('ready')
  const pid = postmasterPid(sharedDir)!
  process.kill(parent.pid, 'SIGSTOP')
  await killAndWait(pid, 'SIGKILL')
  expect(stateOf(pid)).toBe('Z')
  const next = bench.run(sharedDir)
  expect(await next.line('ready')).not.toBe(startTime)
  await next.end('SIGTERM')
  await parent.end('SIGKILL')
})

test('several servers on one data directory lose no acknowledged row when they are killed during writes', async () => {
  const acknowledged = new Set<string>()
  for (let round = 0; round < kills; round++) {
    const server = bench.run(sharedDir, { mode: 'write' })
    await eventually(
      () => server.lines.filter((line) => line.startsWith('wrote')).length > 20 + 7 * round,
      60_000,
    )
    // PostgreSQL itself is killed as well in every other round.
    if (round % 2 === 1) process.kill(postmasterPid(sharedDir)!, 'SIGKILL')
    await server.end('SIGKILL')
    for (const line of server.lines) if (line.startsWith('wrote ')) acknowledged.add(line.slice(6))
  }
  const embedded = await openEmbedded({ dataDir: sharedDir, log: quiet })
  const stored = new Set((await query(embedded.url, 'SELECT id::text FROM rows')).map((row) => row.id))
  await embedded.stop()
  expect(acknowledged.size).toBeGreaterThan(20 * kills + 3 * kills * (kills - 1))
  expect([...acknowledged].filter((id) => !stored.has(id))).toEqual([])
})

test('a data directory whose path is too long for a socket works', async () => {
  const dataDir = bench.launcher.newDataDir(join('deep', 'd'.repeat(100), 'e'.repeat(100), 'data'))
  const embedded = await openEmbedded({ dataDir, log: quiet })
  expect(await query(embedded.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  await embedded.stop()
})

test.skipIf(!isRoot)(
  'an ordinary user without a home directory and with read-only packages can start PostgreSQL',
  async () => {
    const parent = join(bench.dir, 'nobody')
    mkdirSync(parent)
    chownSync(parent, NOBODY, NOBODY)
    const dataDir = join(parent, 'data')
    const server = bench.run(dataDir, { uid: NOBODY, gid: NOBODY })
    await server.line('ready')
    expect(statSync(join(homeOf(dataDir)!, 'data')).uid).toBe(NOBODY)
    expect(await server.end('SIGTERM')).toBe(0)
  },
)

test.skipIf(!isRoot)(
  'the error for an ordinary user names the data directory that cannot be used',
  async () => {
    const dataDir = bench.launcher.newDataDir('forbidden')
    mkdirSync(dataDir, { mode: 0o700 })
    const server = bench.run(dataDir, { uid: NOBODY, gid: NOBODY })
    expect(await server.line('failed')).toMatch(/^cannot use .*forbidden.*: permission denied/)
  },
)

test.skipIf(!isRoot)('root can start PostgreSQL from a clone in a private home directory', async () => {
  const home = join(bench.dir, 'private')
  mkdirSync(home, { mode: 0o700 })
  const script = await bench.install(join(home, 'clone'))
  const dataDir = join(home, 'clone/data')
  for (const round of ['first', 'again']) {
    const server = bench.run(dataDir, { script })
    await server.line('ready')
    const pid = postmasterPid(dataDir)!
    expect(statSync(`/proc/${pid}`).uid, round).not.toBe(0)
    expect(homeOf(dataDir)!.startsWith(home), round).toBe(false)
    expect(await server.end('SIGTERM')).toBe(0)
  }
})
