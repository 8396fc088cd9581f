import { createDatabase } from '@slipway/testing/database.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Database } from '../../src/postgres/database.ts'
import { time } from '../../src/postgres/time.ts'

test('a time has the same value from a column and from JSON', async () => {
  const { url, drop } = await createDatabase()
  const database = new Database({ url, poolSize: 1 })
  try {
    const microseconds = fc.integer({ min: 0, max: 4_000_000_000 * 1e6 })
    const round = microseconds.map((us) => us - (us % 1e6))
    const tenths = microseconds.map((us) => us - (us % 1e5))
    const check = fc.asyncProperty(fc.oneof(microseconds, round, tenths), async (us) => {
      const { rows } = await database.query({
        text: `SELECT t AS column, json_build_object('t', t) AS json
               FROM (SELECT 'epoch'::timestamptz + $1 * interval '1 microsecond' AS t) x`,
        values: [us],
      })
      expect(time(rows[0].json.t)).toBe(time(rows[0].column))
    })
    await fc.assert(check, { numRuns: 300 })
    expect(time('2026-01-31T10:30:00+01:00')).toBe('2026-01-31T09:30:00.000Z')
    expect(time(null)).toBe('')
  } finally {
    await database.close()
    await drop()
  }
})
