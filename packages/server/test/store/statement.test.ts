import type pg from 'pg'
import { expect, test } from 'vitest'
import { statement } from '../../src/store/statement.ts'

/** What the driver is asked for. */
async function asked<Params>(text: string, params: Params) {
  const configs: pg.QueryConfig[] = []
  const db = {
    query: async (config: pg.QueryConfig) => {
      configs.push(config)
      return { rows: [], rowCount: 0 } as unknown as pg.QueryResult
    },
  }
  await statement<never, Params>('vm_test', text).run(db, params)
  return configs[0]
}

test('named parameters become numbered ones', async () => {
  const text = 'SELECT * FROM vms WHERE project_id = :projectId AND id = ANY(:ids)'
  expect(await asked(text, { ids: ['b', 'c'], projectId: 'a' })).toEqual({
    name: 'vm_test',
    text: 'SELECT * FROM vms WHERE project_id = $1 AND id = ANY($2)',
    values: ['a', ['b', 'c']],
  })
})

test('casts and string literals stay as they are', async () => {
  const text = `SELECT now()::text, to_char(:at::timestamptz, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '{}'::jsonb`
  expect(await asked(text, { at: 'x' })).toMatchObject({
    text: `SELECT now()::text, to_char($1::timestamptz, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '{}'::jsonb`,
    values: ['x'],
  })
})

test('a name that is used twice is one value', async () => {
  const text = 'SELECT :id, :idle WHERE :beforeId::uuid IS NULL OR :id < :beforeId'
  expect(await asked(text, { id: 1, idle: 2, beforeId: null })).toMatchObject({
    text: 'SELECT $1, $2 WHERE $3::uuid IS NULL OR $1 < $3',
    values: [1, 2, null],
  })
})

test('members that the text does not name are not sent', async () => {
  expect(await asked('SELECT :id', { id: 1, name: 'x' })).toMatchObject({ values: [1] })
})

test('a missing value throws with the names of statement and parameter', async () => {
  await expect(asked('SELECT :id, :name', { id: 1, name: undefined })).rejects.toThrow(
    'statement vm_test: no value for :name',
  )
})

test('a statement without parameters takes none', async () => {
  expect(await asked('SELECT 1', undefined)).toMatchObject({ text: 'SELECT 1', values: [] })
})
