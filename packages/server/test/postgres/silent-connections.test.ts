import { createDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { Wire } from '@slipway/testing/wire.ts'
import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  Database,
  type DatabaseOptions,
  isDatabaseUnavailable,
  UnknownOutcome,
} from '../../src/postgres/database.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { Signals } from '../../src/postgres/signals.ts'

const one = { text: 'SELECT 1 AS one' }

async function openWire() {
  const store = await createDatabase()
  const wire = new Wire(store.url)
  await wire.restore()
  onTestFinished(async () => {
    await wire.cut()
    await store.drop()
  })
  return { wire, store }
}

/** Opens a database with idle connections that time out after 400 ms. */
async function withIdleConnections(options: Partial<DatabaseOptions> = {}) {
  const { wire } = await openWire()
  const database = new Database({ url: wire.url, poolSize: 4, responseMs: 400, ...options })
  onTestFinished(() => database.close())
  await Promise.all(Array.from({ length: 4 }, () => database.query(one)))
  return { wire, database }
}

test('a statement on a connection that fell silent fails, and the next one gets a new connection', async () => {
  const { wire, database } = await withIdleConnections()
  wire.silence()
  const error = await database.query(one).catch((reason) => reason)
  expect(isDatabaseUnavailable(error)).toBe(true)
  expect((await database.query(one)).rows).toEqual([{ one: 1 }])
})

test('one overdue response also closes idle connections that have been silent for as long', async () => {
  const lost: Error[] = []
  const { wire, database } = await withIdleConnections({ onError: (error) => lost.push(error) })
  wire.silence()
  await expect(database.query(one)).rejects.toThrow('did not respond')
  await eventually(() => lost.length === 3)
  const all = await Promise.all(Array.from({ length: 4 }, () => database.query(one)))
  expect(all.map(({ rows }) => rows[0].one)).toEqual([1, 1, 1, 1])
})

test('a connection that falls silent before its commit fails the transaction, and during the commit leaves its outcome unknown', async () => {
  const { wire, database } = await withIdleConnections()
  const before = database.transaction(async (tx) => {
    await tx.query(one)
    wire.silence()
    await tx.query(one)
  })
  await expect(before).rejects.not.toBeInstanceOf(UnknownOutcome)
  const atCommit = database.transaction(async (tx) => {
    await tx.query(one)
    wire.silence()
  })
  await expect(atCommit).rejects.toBeInstanceOf(UnknownOutcome)
})

test('closing the database also closes silent connections', async () => {
  const { wire } = await openWire()
  const database = new Database({ url: wire.url, poolSize: 1, responseMs: 400 })
  await database.query(one)
  const removed = new Promise((resolve) => database.pool.once('remove', resolve))
  wire.silence()
  await database.close()
  await removed
})

test('PostgreSQL ends a statement that exceeds the time limit, and its connection stays open', async () => {
  const { database } = await withIdleConnections({ poolSize: 1 })
  const slow = database.transaction(async (tx) => tx.query({ text: 'SELECT pg_sleep(60)' }))
  await expect(slow).rejects.toThrow('statement timeout')
  await expect(database.query(one)).resolves.toBeDefined()
})

test('a listener whose connection fell silent reconnects and receives the next signal', async () => {
  const { wire, store } = await openWire()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const [listener, sender] = [new Signals(wire.url), new Signals(store.url)]
  onTestFinished(async () => void (await Promise.all([listener.close(), sender.close()])))
  await Promise.all([listener.open(), sender.open()])
  wire.silence()
  // One heartbeat is sent, and is overdue when the next one is due.
  vi.advanceTimersByTime(10_000)
  let received = 0
  listener.on('events', () => received++)
  await eventually(() => received > 0)
  const byConnecting = received
  await eventually(() => {
    sender.send('events')
    return received > byConnecting
  })
})

test('a listener with a silent connection can be closed', async () => {
  const { wire } = await openWire()
  const listener = new Signals(wire.url)
  await listener.open()
  wire.silence()
  await listener.close()
})

test('a start whose connection falls silent before the migration fails, and can be repeated', async () => {
  const { wire, store } = await openWire()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  // Another process migrates, and this process waits for the lock of the migration.
  const holder = new pg.Client(store.url)
  await holder.connect()
  onTestFinished(() => holder.end())
  await holder.query('SELECT pg_advisory_lock(7102001)')
  const waiting = migrate(wire.url)
  waiting.catch(() => {})
  const isWaiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_try%'`
  await eventually(async () => (await holder.query(isWaiting)).rowCount)
  wire.silence()
  const advance = setTimeout(() => {
    vi.advanceTimersByTime(25_000)
    advance.refresh()
  }, 100)
  onTestFinished(() => clearTimeout(advance))
  await expect(waiting).rejects.toThrow('did not respond')
})
