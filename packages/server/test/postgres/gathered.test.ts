import { createDatabase } from '@slipway/testing/database.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Failure } from '../../src/domain/failure.ts'
import { Batches, transactTogether } from '../../src/postgres/batches.ts'
import { Database, TryAgain, type Tx } from '../../src/postgres/database.ts'
import { gathered, gatheredChange, type OwnResult } from '../../src/postgres/gathered.ts'

/** Tests code that is written for one request, but runs once for all requests that share a transaction. */

let store: Awaited<ReturnType<typeof createDatabase>>
let database: Database
beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 4 })
  await database.query({ text: 'CREATE TABLE notes (name text PRIMARY KEY, place serial)' })
})
afterAll(async () => {
  await database.close()
  await store.drop()
})
beforeEach(async () => {
  calls.length = 0
  await database.query({ text: 'TRUNCATE notes RESTART IDENTITY' })
})

const calls: string[] = []
const names = async () =>
  (await database.query({ text: 'SELECT name FROM notes ORDER BY place' })).rows.map(({ name }) => name)

/** Refuses names with a capital letter. */
const check = gathered(async (_: Tx, wanted: string[]): Promise<OwnResult<string>[]> => {
  calls.push(`check ${wanted.join(' ')}`)
  return wanted.map((name) => (/[A-Z]/.test(name) ? new Failure('conflict', `${name} is refused`) : name))
})
const claim = gathered(async (_: Tx, wanted: string[]) => wanted, { claimOf: (name) => name })
const insert = (tx: Tx, name: string) => tx.enqueue(writeAll, name)
async function writeAll(tx: Tx, wanted: string[]): Promise<void> {
  calls.push(`insert ${wanted.join(' ')}`)
  await tx.query({ text: 'INSERT INTO notes (name) SELECT unnest($1::text[])', values: [wanted] })
}
const insertNow = gatheredChange(async (tx: Tx, wanted: string[]) => {
  await writeAll(tx, wanted)
  return wanted
})

const together = <Result>(wanted: string[], work: (tx: Tx, name: string) => Promise<Result>) =>
  transactTogether(database, wanted, false, work)

test('calls of one event loop turn are merged, and a refusal affects only its own request', async () => {
  const results = await together(['one', 'Two', 'three'], async (tx, name) => {
    await check(tx, name)
    await insert(tx, name)
    return `${name} done`
  })
  expect(results).toEqual(['one done', expect.any(Failure), 'three done'])
  expect(calls).toEqual(['check one Two three', 'insert one three'])
  expect(await names()).toEqual(['one', 'three'])
})

test('a request that reaches a call later than the others is still processed', async () => {
  await together(['one', 'two'], async (tx, name) => {
    if (name === 'two') await tx.query({ text: 'SELECT pg_sleep(0.02)' })
    await insert(tx, await check(tx, name))
  })
  expect(calls.slice(0, 2)).toEqual(['check one', 'check two'])
  expect((await names()).sort()).toEqual(['one', 'two'])
})

test('a request that reaches a call later than the others sees what they have claimed', async () => {
  const claimed: string[] = []
  const claimNext = gathered(async (tx: Tx, wanted: string[]) => {
    const next = claimed.length
    await tx.query({ text: 'SELECT pg_sleep(0.02)' })
    claimed.push(...wanted)
    return wanted.map((_, index) => next + index)
  })
  const results = await together(['one', 'two', 'three'], async (tx, name) => {
    if (name === 'three') await tx.query({ text: 'SELECT 1' })
    return claimNext(tx, name)
  })
  expect(results).toEqual([0, 1, 2])
})

test('if two requests claim the same thing, the second leaves the batch; one request may claim it twice', async () => {
  const results = await together(['one', 'two', 'one'], async (tx, name) => {
    await claim(tx, name)
    return claim(tx, name)
  })
  expect(results).toEqual(['one', 'two', expect.any(TryAgain)])
})

test('if every request is refused, nothing is written', async () => {
  const results = await together(['One', 'Two'], async (tx, name) => {
    await tx.query({ name: 'a lock', text: 'SELECT 1' })
    await insert(tx, await check(tx, name))
  })
  expect(results).toEqual([expect.any(Failure), expect.any(Failure)])
  expect(await names()).toEqual([])
})

for (const [how, write] of [
  ['queued', insert],
  ['gathered', insertNow],
  [
    'sent separately',
    (tx: Tx, name: string) => tx.query({ text: 'INSERT INTO notes (name) VALUES ($1)', values: [name] }),
  ],
] as const)
  test(`a request that fails after a write (${how}) is rolled back, and the others are repeated one by one`, async () => {
    const batches = new Batches<string, string>({
      maxItems: 8,
      handle: (wanted, isAlone) =>
        transactTogether(database, wanted, isAlone, async (tx, name) => {
          await write(tx, name)
          if (name === 'two') throw new Failure('conflict', 'refused late')
          return name
        }),
    })
    const results = await Promise.allSettled(['one', 'two', 'three'].map((name) => batches.submit(name)))
    expect(
      results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message)),
    ).toEqual(['one', 'refused late', 'three'])
    expect((await names()).sort()).toEqual(['one', 'three'])
  })

test('queued writes run before the next statement of the transaction, in the order of their first calls', async () => {
  const seen = await database.transaction(async (tx) => {
    await insert(tx, 'one')
    await insert(tx, 'two')
    const { rows } = await tx.query({ text: 'SELECT name FROM notes ORDER BY place' })
    await insert(tx, 'three')
    return rows.map(({ name }) => name)
  })
  expect(seen).toEqual(['one', 'two'])
  expect(calls).toEqual(['insert one two', 'insert three'])
  expect(await names()).toEqual(['one', 'two', 'three'])
})

test('a queued write that fails makes the transaction fail with its error', async () => {
  await insertNow(database.withoutTransaction, 'one')
  const failing = database.transaction((tx) => insert(tx, 'one'))
  await expect(failing).rejects.toThrow(/duplicate key/)
})
