import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { createDatabase } from '@slipway/testing/database.ts'
import { expect, onTestFinished, test } from 'vitest'
import { Database } from '../../src/postgres/database.ts'
import { JoinedSocket } from '../../src/postgres/joined-socket.ts'
import type { QueryResult } from '../../src/postgres/prepared.ts'

/** Opens a database with one connection, so that each statement runs after the previous one on the same connection. */
async function withOneConnection(): Promise<Database> {
  const store = await createDatabase()
  onTestFinished(() => store.drop())
  const database = new Database({ url: store.url, poolSize: 1 })
  onTestFinished(() => database.close())
  return database
}

const everyKind = {
  name: 'every_kind',
  text: `SELECT $1::text AS text, $2::bigint AS count, $3::timestamptz AS at, $4::uuid[] AS ids, $5::jsonb AS json,
                true AS is_so, NULL AS nothing`,
}
const id = '01a1e57a-5f96-7000-8000-000000000000'
const at = new Date('2026-11-16T12:00:00.125Z')
const valuesOf = (text: string) => [text, 2 ** 40, at, [id], JSON.stringify({ a: [1, null] })]
const rowOf = (text: string) => ({
  text,
  count: 2 ** 40,
  at,
  ids: [id],
  json: { a: [1, null] },
  is_so: true,
  nothing: null,
})

test('a named statement returns the same rows on first use, pipelined, and afterwards', async () => {
  const database = await withOneConnection()
  const ask = async (text: string) => (await database.query({ ...everyKind, values: valuesOf(text) })).rows
  const [one, two] = await database.transaction((tx) =>
    Promise.all(['one', 'two'].map((text) => tx.query({ ...everyKind, values: valuesOf(text) }))),
  )
  expect([one?.rows, two?.rows]).toEqual([[rowOf('one')], [rowOf('two')]])
  expect(await ask('three')).toEqual([rowOf('three')])
  expect(await ask('four')).toEqual([rowOf('four')])
})

test('rows equal those of the original driver', async () => {
  const database = await withOneConnection()
  const text = `SELECT $1::bytea AS bytes, '{1,NULL}'::integer[] AS numbers, '{a,"b c"}'::text[] AS words,
                       1.10::numeric AS exact, 'infinity'::timestamptz AS never, '10.0.0.1'::inet AS address,
                       date '2026-11-16' AS day, 1 AS twice, NULL AS twice`
  const values = [Buffer.from('\0\x01')]
  const { rows } = await database.pool.query({ text, values })
  for (let call = 0; call < 2; call++)
    expect((await database.query({ name: 'as_driver', text, values })).rows).toEqual(rows)
})

test('rows are described once for each connection', async () => {
  const database = await withOneConnection()
  const nameOfColumn = 'a_long_name_of_a_column'
  const wide = { name: 'wide', text: `SELECT 1 AS ${nameOfColumn}`, values: [] }
  const received: number[] = []
  for (let call = 0; call < 3; call++) {
    const { stream } = await connectionOf(database)
    const before = stream.bytesRead
    await database.query(wide)
    received.push(stream.bytesRead - before)
  }
  // The first response also contains the confirmation that the statement is prepared.
  expect(received[0]).toBeGreaterThan(received[1]! + 'ParseComplete'.length + nameOfColumn.length)
  expect(received[1]).toBe(received[2])
})

async function connectionOf(database: Database): Promise<{ stream: { bytesRead: number } }> {
  const client = await database.pool.connect()
  client.release()
  return (client as unknown as { connection: { stream: { bytesRead: number } } }).connection
}

test('a named statement returns the number of affected rows', async () => {
  const database = await withOneConnection()
  await database.query({ text: 'CREATE TABLE things (n integer)' })
  const insert = { name: 'things_insert', text: 'INSERT INTO things SELECT generate_series(1, $1)' }
  const change = { name: 'things_change', text: 'UPDATE things SET n = n + 1 WHERE n > $1 RETURNING n' }
  const remove = { name: 'things_remove', text: 'DELETE FROM things' }
  for (const expected of [3, 2, 0])
    expect((await database.query({ ...insert, values: [expected] })).rowCount).toBe(expected)
  for (let call = 0; call < 2; call++) {
    const { rowCount, rows } = await database.query({ ...change, values: [1] })
    expect(rowCount).toBe(rows.length)
    expect(rowCount).toBeGreaterThan(1)
  }
  expect((await database.query(remove)).rowCount).toBe(5)
  expect((await database.query(remove)).rowCount).toBe(0)
})

test('an error in a statement or its values is reported, and the connection stays usable', async () => {
  const database = await withOneConnection()
  const { stream } = await connectionOf(database)
  // For a statement outside of a transaction, the pool closes the connection after the error.
  const rowsOf = async (config: { name: string; text: string; values?: unknown[] }) =>
    (await database.transaction((tx) => tx.query(config))).rows
  const divide = { name: 'divide', text: 'SELECT 12 / $1::integer AS share' }
  const shareOf = (value: unknown) => rowsOf({ ...divide, values: [value] })
  const circular: Record<string, unknown> = {}
  circular.self = circular
  await expect(shareOf(circular)).rejects.toThrow('circular')
  await expect(shareOf('x')).rejects.toMatchObject({ code: '22P02' })
  expect(await shareOf(4)).toEqual([{ share: 3 }])
  await expect(shareOf(0)).rejects.toMatchObject({ code: '22012' })
  await expect(shareOf(circular)).rejects.toThrow('circular')
  const wrong = { name: 'wrong', text: 'SELECT nothing FROM nowhere' }
  await expect(rowsOf(wrong)).rejects.toMatchObject({ code: '42P01' })
  await expect(rowsOf(wrong)).rejects.toMatchObject({ code: '42P01' })
  const namesake = { ...divide, text: 'SELECT 13 / $1::integer AS share', values: [1] }
  await expect(rowsOf(namesake)).rejects.toThrow('two statements have the name divide')
  expect(await shareOf(6)).toEqual([{ share: 2 }])
  expect((await connectionOf(database)).stream).toBe(stream)
})

test('statements pipelined after a failed one fail too, and are prepared the next time', async () => {
  const database = await withOneConnection()
  const names = ['first', 'second', 'third']
  const askAll = (divisor: number) =>
    database.transaction((tx) =>
      Promise.allSettled(
        names.map((name) => tx.query({ name, text: `SELECT 6 / $1::integer AS ${name}`, values: [divisor] })),
      ).then((settled) => {
        const failed = settled.find(({ status }) => status === 'rejected')
        if (!failed) return settled.map((each) => (each as PromiseFulfilledResult<QueryResult>).value.rows[0])
        throw withCodes(settled.map((each) => (each as PromiseRejectedResult).reason.code))
      }),
    )
  const codes = { codes: ['22012', '25P02', '25P02'] }
  await expect(askAll(0)).rejects.toMatchObject(codes)
  expect(await askAll(2)).toEqual([{ first: 3 }, { second: 3 }, { third: 3 }])
  await expect(askAll(0)).rejects.toMatchObject(codes)
  expect(await askAll(3)).toEqual([{ first: 2 }, { second: 2 }, { third: 2 }])
})

const withCodes = (codes: string[]) => Object.assign(new Error('statements failed'), { codes })

test('calls in progress fail when their connection is lost, and later calls use another connection', async () => {
  const database = await withOneConnection()
  const end = { name: 'end_myself', text: 'SELECT pg_terminate_backend(pg_backend_pid())' }
  const one = { name: 'one', text: 'SELECT 1 AS one' }
  for (let call = 0; call < 2; call++) {
    expect((await database.query(one)).rows).toEqual([{ one: 1 }])
    const asked: Promise<unknown>[] = []
    const lost = database.transaction(async (tx) => {
      asked.push(...[one, end, one].map((config) => tx.query(config)))
      await Promise.all(asked)
    })
    await expect(lost).rejects.toThrow()
    const states = (await Promise.allSettled(asked)).map(({ status }) => status)
    expect(states).toEqual(['fulfilled', 'rejected', 'rejected'])
  }
})

test('the stack trace of a statement error contains the caller', async () => {
  const database = await withOneConnection()
  const asked = database.transaction(async (tx) => {
    await tx.query({ name: 'by_zero', text: 'SELECT 1 / 0' })
  })
  const error: Error = await asked.catch((error) => error)
  expect(error.stack).toContain('prepared.test.ts')
})

test('socket writes of one event loop turn are sent together', async () => {
  const server = createServer()
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = new JoinedSocket()
  onTestFinished(() => void socket.destroy())
  socket.connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [[other]] = await Promise.all([once(server, 'connection'), once(socket, 'connect')])
  for (const words of [
    ['one', 'two'],
    ['three', 'four'],
  ]) {
    for (const word of words) {
      socket.write(word)
      await null
    }
    // Nothing has been sent yet.
    expect(socket.writableLength).toBe(words.join('').length)
    const [received] = await once(other, 'data')
    expect(String(received)).toBe(words.join(''))
    await setImmediate()
    expect(socket.writableLength).toBe(0)
  }
})
