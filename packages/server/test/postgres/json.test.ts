import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createDatabase, type TestDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Database, type Queryable } from '../../src/postgres/database.ts'
import {
  boolean,
  constant,
  each,
  JsonText,
  json,
  jsonSql,
  jsonTextOf,
  list,
  number,
  object,
  plain,
  text,
  time,
} from '../../src/postgres/json.ts'
import { keyedStatement, sharedRead } from '../../src/postgres/keyed.ts'

let store: TestDatabase
let database: Database
beforeAll(async () => {
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 2 })
})
afterAll(async () => {
  await database?.close()
  await store?.drop()
})

const written = async (sql: string, values: unknown[] = []): Promise<string> =>
  (await database.query({ text: `SELECT ${sql} AS written`, values })).rows[0].written

test('every string is encoded as JSON.stringify would', async () => {
  const sql = jsonSql(list(text('$1::text'), object({ name: text('$2::text') })))
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), async (a, b) => {
      fc.pre(!`${a}${b}`.includes('\0') && `${a}${b}`.isWellFormed())
      expect(JSON.parse(await written(sql, [a, b]))).toEqual([a, { name: b }])
    }),
    { numRuns: 200 },
  )
})

test('values of every kind are encoded, and NULL becomes an empty string', async () => {
  const sql = jsonSql(
    object({
      id: plain(`'01890a5d-ac96-774b-bcce-b302099a8057'::uuid`),
      none: plain('NULL::uuid'),
      noText: text('NULL'),
      at: time(`'2026-01-31 09:30:00.1239+02'::timestamptz`),
      never: time('NULL::timestamptz'),
      count: number('7'),
      isOpen: boolean('true'),
      isShut: boolean('NULL'),
      labels: json(`'{"a": 1}'::jsonb`),
      nothing: json('NULL::jsonb'),
      fixed: constant({ is: true, quote: `it's` }),
      rows: list(constant(0), each(number('n'), 'generate_series(1, 3) n', 'n DESC')),
      noRows: list(constant(0), each(number('n'), 'generate_series(1, 0) n', 'n')),
      empty: list(each(number('n'), 'generate_series(1, 0) n', 'n')),
    }),
  )
  expect(await written(sql)).toBe(
    JSON.stringify({
      id: '01890a5d-ac96-774b-bcce-b302099a8057',
      none: '',
      noText: '',
      at: '2026-01-31T07:30:00.123Z',
      never: '',
      count: 7,
      isOpen: true,
      isShut: false,
      labels: { a: 1 },
      nothing: null,
      fixed: { is: true, quote: `it's` },
      rows: [0, 3, 2, 1],
      noRows: [0],
      empty: [],
    }).replace('{"a":1}', '{"a": 1}'),
  )
})

test('a record may have more members than a PostgreSQL function has arguments', async () => {
  const members = Array.from({ length: 130 }, (_, n) => [`m${n}`, number(String(n))] as const)
  const record = JSON.parse(await written(jsonSql(object(Object.fromEntries(members)))))
  expect(record).toEqual(Object.fromEntries(members.map(([name], n) => [name, n])))
})

test('JSON that is already encoded is embedded in other JSON unchanged', () => {
  expect(JSON.stringify({ a: new JsonText('{"b":1}') })).toBe('{"a":{"b":1}}')
  expect(jsonTextOf(new JsonText('{"b" : 1}'))).toBe('{"b" : 1}')
})

test('reads of one event loop turn share one statement with each key once, and a transaction reads separately', async () => {
  const double = keyedStatement<{ doubled: number }, { n: number }>(
    'test_double',
    'SELECT w.n, 2 * w.n AS doubled FROM unnest(:n::int[]) AS w (n) WHERE w.n > 0',
  )
  let asked = 0
  const counting: Queryable = {
    get sharedReads() {
      return counting
    },
    query: (config) => {
      asked++
      return database.query(config)
    },
  }
  const rows = await Promise.all([3, 0, 5, 3].map((n) => double.one(counting, { n })))
  expect(rows.map((row) => row?.doubled)).toEqual([6, undefined, 10, 6])
  expect(asked).toBe(1)
  await double.one(counting, { n: 3 })
  expect(asked).toBe(2)
  const inTransaction = await database.transaction((tx) => double.one(tx, { n: 4 }))
  expect(inTransaction?.doubled).toBe(8)
})

test('a row is returned only to reads that match its whole key', async () => {
  const owned = keyedStatement<{ what: string }, { owner: string; n: number }>(
    'test_owned',
    `SELECT t.owner, t.n, t.what FROM (VALUES ('a', 1, 'apple'), ('b', 2, 'pear')) AS t (owner, n, what)
     WHERE t.n = ANY (:n::int[])`,
  )
  const asked = [
    { owner: 'b', n: 1 },
    { owner: 'a', n: 1 },
    { owner: 'b', n: 2 },
    { owner: 'a', n: 2 },
  ]
  const found = await Promise.all(asked.map((key) => owned.one(database, key)))
  expect(found.map((row) => row?.what)).toEqual([undefined, 'apple', 'pear', undefined])
  const alone = await database.transaction((tx) => Promise.all(asked.map((key) => owned.one(tx, key))))
  expect(alone).toEqual(found)
})

test('reads are batched while another read is in progress, but do not wait for one that hangs', async () => {
  const triple = keyedStatement<{ tripled: number }, { n: number }>(
    'test_triple',
    'SELECT w.n, 3 * w.n AS tripled FROM unnest(:n::int[]) AS w (n)',
  )
  const started: { keys: unknown; end(): void }[] = []
  const held: Queryable = {
    get sharedReads() {
      return held
    },
    async query(config) {
      await new Promise<void>((end) => started.push({ keys: config.values?.[0], end }))
      return database.query(config)
    },
  }
  const ask = (n: number) => triple.one(held, { n })
  const keys = () => started.map((each) => each.keys)
  const first = ask(1)
  await eventually(() => started.length === 1)
  const others = [ask(2), ask(3)]
  // These reads are not in the first batch, and do not wait for its end.
  await eventually(() => started.length === 2)
  expect(keys()).toEqual([[1], [2, 3]])
  const last = [ask(4), ask(5)]
  started[1]!.end()
  expect((await Promise.all(others)).map((row) => row?.tripled)).toEqual([6, 9])
  await eventually(() => started.length === 3)
  expect(keys()).toEqual([[1], [2, 3], [4, 5]])
  for (const { end } of started) end()
  expect((await Promise.all([first, ...last])).map((row) => row?.tripled)).toEqual([3, 12, 15])
})

test('reads that follow a finished read join the batch that was waiting', async () => {
  const echo = keyedStatement<object, { n: number }>(
    'test_echo',
    'SELECT w.n FROM unnest(:n::int[]) AS w (n)',
  )
  const started: unknown[] = []
  let meanwhile: Promise<object | undefined> | undefined
  // This database responds immediately, so that a slow machine does not cause timeouts.
  const prompt: Queryable = {
    get sharedReads() {
      return prompt
    },
    async query({ values }) {
      const numbers = values?.[0] as number[]
      started.push(numbers)
      meanwhile ??= ask(3)
      return { rows: numbers.map((n) => ({ n })) } as unknown as Awaited<ReturnType<Queryable['query']>>
    },
  }
  const ask = (n: number) => echo.one(prompt, { n })
  expect(await ask(1).then(() => ask(2))).toEqual({ n: 2 })
  expect(await meanwhile).toEqual({ n: 3 })
  expect(started).toEqual([[1], [3, 2]])
})

test('a failing statement fails all reads that share it, and no later ones', async () => {
  const divide = keyedStatement<{ share: number }, { n: number }>(
    'test_divide',
    'SELECT w.n, 12 / w.n AS share FROM unnest(:n::int[]) AS w (n)',
  )
  const both = await Promise.allSettled([3, 0].map((n) => divide.one(database, { n })))
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await divide.one(database, { n: 3 })).toMatchObject({ share: 4 })
})

test('identical concurrent reads share one result that is read after they were requested, and a failure is not cached', async () => {
  const reads: string[] = []
  const read = sharedRead(async (_db, question: { about: string }) => {
    reads.push(question.about)
    if (question.about === 'failing' && reads.length < 4) throw new Error('read failed')
    return `${question.about} ${reads.length}`
  })
  const ask = (about: string) => read(database, { about })
  expect(await Promise.all([ask('a'), ask('b'), ask('a')])).toEqual(['a 1', 'b 2', 'a 1'])
  const failed = await Promise.allSettled([ask('failing'), ask('failing')])
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await ask('failing')).toBe('failing 4')
  expect(await ask('a')).toBe('a 5')
  await database.transaction(async (tx) => expect(await read(tx, { about: 'a' })).toBe('a 6'))
})

test('a shared read that finished or failed is released from memory', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const read = sharedRead(async (_db, { about }: { about: string }) => {
    if (about === 'failing') throw new Error('read failed')
    return about
  })
  const asked = ['a', 'failing'].map((about) => {
    const question = { about }
    return { kept: new WeakRef(question), answer: read(database, question) }
  })
  const kept = asked.map((one) => one.kept)
  await Promise.allSettled(asked.splice(0).map(({ answer }) => answer))
  await eventually(() => {
    collect()
    return kept.every((question) => question.deref() === undefined)
  })
})
