import { setImmediate } from 'node:timers/promises'
import { createDatabase, query } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Database, TryAgain, UnknownOutcome } from '../../src/postgres/database.ts'

/** Opens a database with four idle connections, and records its log about lost connections. */
async function withConnections() {
  const store = await createDatabase()
  onTestFinished(() => store.drop())
  const lost: Error[] = []
  const database = new Database({ url: store.url, poolSize: 4, onError: (error) => lost.push(error) })
  const asked = Array.from({ length: 4 }, () => database.query({ text: 'SELECT pg_backend_pid() AS pid' }))
  const pids = (await Promise.all(asked)).map(({ rows }) => rows[0].pid as number)
  return { database, pids, lost }
}

test('each lost connection is logged once, without the internals of the client', async () => {
  const { database, pids, lost } = await withConnections()
  for (const pid of pids) process.kill(pid, 'SIGTERM')
  await eventually(() => lost.length === 4)
  for (const error of lost) {
    expect(error.message).toContain('terminating connection')
    expect(error).not.toHaveProperty('client')
  }
  expect((await database.query({ text: 'SELECT 1 AS one' })).rows).toEqual([{ one: 1 }])
  await database.close()
  expect(lost).toHaveLength(4)
})

test('closing the database logs no lost connection', async () => {
  const { database, pids, lost } = await withConnections()
  const ends = new Promise<void>((resolve) => {
    let left = pids.length
    database.pool.on('remove', () => --left === 0 && resolve())
  })
  // Each server process is paused, so that it reads the end of its session after SIGTERM, and sends an error.
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  await database.close()
  await setImmediate()
  for (const pid of pids) process.kill(pid, 'SIGTERM')
  for (const pid of pids) process.kill(pid, 'SIGCONT')
  await ends
  expect(lost).toEqual([])
})

test('a connection that breaks while writes and the commit are in progress leaves the outcome unknown', async () => {
  const { database } = await withConnections()
  const broken = database.transaction(async (tx) => {
    await tx.query({ text: 'SELECT 1' })
    await tx.awaitAtCommit(tx.query({ text: 'SELECT pg_terminate_backend(pg_backend_pid())' }))
  })
  await expect(broken).rejects.toBeInstanceOf(UnknownOutcome)
  await database.close()
})

test('reads sent with the commit see the written rows, and a failing read does no harm', async () => {
  const store = await createDatabase()
  onTestFinished(() => store.drop())
  // A request that kept the only connection would block the next one.
  const database = new Database({ url: store.url, poolSize: 1 })
  await database.query({ text: 'CREATE TABLE notes (text text)' })
  const write = async (text: string, ...read: string[]) => {
    const ahead = await database.transaction(async (tx) => {
      const reads = read.map((text) => tx.readWithCommit((db) => db.query({ text })))
      await tx.query({ text: 'INSERT INTO notes VALUES ($1)', values: [text] })
      return { reads }
    })
    return Promise.all(ahead.reads)
  }
  const count = 'SELECT count(*) FROM notes'
  expect(await write('one', count, 'SELECT nonsense', count)).toMatchObject([
    { rows: [{ count: 1 }] },
    undefined,
    { rows: [{ count: 1 }] },
  ])
  const thrower = database.transaction(async (tx) => {
    await tx.query({ text: `INSERT INTO notes VALUES ('two')` })
    const thrown = tx.readWithCommit(() => {
      throw new Error('thrown before the query')
    })
    return { thrown }
  })
  expect(await (await thrower).thrown).toBeUndefined()
  const refused = database.transaction(async (tx) => {
    void tx.readWithCommit((db) => db.query({ text: count }))
    await tx.query({ text: `INSERT INTO notes VALUES ('three')` })
    await tx.awaitAtCommit(tx.query({ text: 'SELECT 1 / 0' }))
  })
  await expect(refused).rejects.toThrow('division by zero')
  expect(await write('four', count)).toMatchObject([{ rows: [{ count: 3 }] }])
  await database.close()
})

test('a transaction is restarted when an assertion in a statement fails', async () => {
  const { database } = await withConnections()
  let attempts = 0
  const result = await database.transaction(async (tx) => {
    const isTrue = ++attempts === 3
    await tx.awaitAtCommit(tx.query({ text: 'SELECT assert_or_abort($1, $2)', values: [isTrue, 'not yet'] }))
    return `attempt ${attempts}`
  })
  expect(result).toBe('attempt 3')
  await database.close()
})

test('a transaction is retried immediately, then after growing pauses, and finally gives up', async () => {
  const { database } = await withConnections()
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  const timers = vi.spyOn(globalThis, 'setTimeout')
  onTestFinished(() => void vi.restoreAllMocks())
  const steps: (string | number)[] = []
  const failing = database.transaction(async () => {
    // Timers of seconds belong to connections.
    const pauses = timers.mock.calls.splice(0).map(([, ms]) => ms ?? 0)
    steps.push(...pauses.filter((ms) => ms < 1_000), 'attempt')
    throw new TryAgain('another transaction was faster')
  })
  await expect(failing).rejects.toBeInstanceOf(TryAgain)
  const [first, second, ...later] = steps
  expect([first, second]).toEqual(['attempt', 'attempt'])
  expect(later).toEqual([2, 4, 8, 16, 32, 64].flatMap((ms) => [ms, 'attempt']))
  await database.close()
})

test('statements that were prepared before a migration are prepared again, alone and in transactions', async () => {
  const store = await createDatabase()
  const database = new Database({ url: store.url, poolSize: 4 })
  onTestFinished(async () => {
    await database.close()
    await store.drop()
  })
  await database.query({ text: 'CREATE TABLE changed AS SELECT 1 AS first' })
  const read = { name: 'read_changed', text: 'SELECT * FROM changed' }
  const readAlone = () => database.query(read)
  const readTogether = () => database.transaction((tx) => tx.query(read))
  /** Reads often enough at the same time to use all connections. */
  const readEverywhere = (one: () => Promise<{ rows: unknown[] }>) =>
    Promise.all(Array.from({ length: 8 }, async () => (await one()).rows))
  for (const [column, one] of [
    ['second', readAlone],
    ['third', readTogether],
  ] as const) {
    await readEverywhere(one)
    await query(store.url, `ALTER TABLE changed ADD COLUMN ${column} integer`)
    for (const rows of await readEverywhere(one))
      expect(rows).toEqual([expect.objectContaining({ [column]: null })])
  }
})
