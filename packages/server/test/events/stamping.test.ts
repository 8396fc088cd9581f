import { createDatabase } from '@slipway/testing/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Database } from '../../src/postgres/database.ts'
import { findEventBounds, listEventsBetween, stampEvents } from '../../src/store/events/events.ts'

let database: Database
let drop: () => Promise<void>
beforeAll(async () => {
  const created = await createDatabase()
  drop = created.drop
  database = new Database({ url: created.url, poolSize: 12 })
})
afterAll(async () => {
  await database.close()
  await drop()
})

const write = `INSERT INTO events_pending (id, type, resource_type, resource_id, actor, request_id)
               VALUES (gen_random_uuid(), 'test', 'test', $1, 'system', '')`

test('every event gets one permanent position, even with concurrent stampers, and readers skip no event that commits late', async () => {
  const writers = 6
  const eachWrites = 60
  let isWriting = true
  const stampers = Array.from({ length: 4 }, async () => {
    while (isWriting) await stampEvents(database)
  })
  const seen: { id: string; position: number }[] = []
  const reader = (async () => {
    let position = 0
    for (;;) {
      const isLast = !isWriting
      const range = { after: position, upTo: Number.MAX_SAFE_INTEGER }
      const rows = await listEventsBetween(database, { projectId: null, organizationId: null }, range, 1000)
      seen.push(...rows.map(({ id, position }) => ({ id, position })))
      position = rows.at(-1)?.position ?? position
      if (isLast) return
    }
  })()
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let n = 0; n < eachWrites; n++)
        await database.transaction(async (tx) => {
          await tx.query({ text: write, values: [`writer-${writer}`] })
          // Transactions commit in a different order than they write.
          await tx.query({ text: 'SELECT pg_sleep(random() * 0.004)' })
        })
    }),
  )
  await stampEvents(database, true)
  isWriting = false
  await Promise.all([reader, ...stampers])

  const { rows } = await database.pool.query('SELECT id, position FROM events_written ORDER BY position')
  expect(rows.map(({ position }) => position)).toEqual(
    Array.from({ length: writers * eachWrites }, (_, index) => index + 1),
  )
  expect(seen).toEqual(rows)
  expect((await findEventBounds(database)).last).toBe(writers * eachWrites)
})

test('stamping waits for an unfinished transaction without delaying the positions of other events', async () => {
  const { last } = await findEventBounds(database)
  const slow = await database.pool.connect()
  try {
    await slow.query('BEGIN')
    await slow.query(write, ['slow'])
    await database.query({ text: write, values: ['quick'] })
    await stampEvents(database, true)
    expect((await findEventBounds(database)).last).toBe(last + 1)
    await slow.query('COMMIT')
    await stampEvents(database, true)
    expect((await findEventBounds(database)).last).toBe(last + 2)
  } finally {
    slow.release()
  }
  const rows = await listEventsBetween(
    database,
    { projectId: null, organizationId: null },
    { after: last, upTo: Number.MAX_SAFE_INTEGER },
    10,
  )
  expect(rows.map(({ resource_id }) => resource_id)).toEqual(['quick', 'slow'])
})

test('stamping keeps the order of writes to one resource across batches', async () => {
  const { last } = await findEventBounds(database)
  await database.query({
    text: `INSERT INTO events_pending (id, type, resource_type, resource_id, actor, request_id)
           SELECT gen_random_uuid(), n::text, 'test', 'long', 'system', '' FROM generate_series(1, 2300) n`,
  })
  await stampEvents(database, true)
  const rows = await listEventsBetween(
    database,
    { projectId: null, organizationId: null },
    { after: last, upTo: last + 2300 },
    3000,
  )
  expect(rows.map(({ type }) => Number(type))).toEqual(Array.from({ length: 2300 }, (_, n) => n + 1))
})
