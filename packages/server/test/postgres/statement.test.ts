import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { columns, filteredStatement, statement } from '../../src/postgres/statement.ts'

/** Returns a database that records the queries passed to the driver. */
function recorder() {
  const configs: pg.QueryConfig[] = []
  const query = async (config: pg.QueryConfig) => {
    configs.push(config)
    return { rows: [], rowCount: 0 } as unknown as pg.QueryResult
  }
  return { configs, query }
}

async function asked<Params>(text: string, params: Params) {
  const db = recorder()
  await statement<never, Params>(`test_${randomUUID()}`, text).run(db, params)
  return db.configs[0]
}

test('the named parameters of a statement become numbered ones', async () => {
  const text = 'SELECT * FROM vms WHERE project_id = :projectId AND id = ANY(:ids)'
  expect(await asked(text, { ids: ['b', 'c'], projectId: 'a' })).toEqual({
    name: expect.stringMatching(/^test_/),
    text: 'SELECT * FROM vms WHERE project_id = $1 AND id = ANY($2)',
    values: ['a', ['b', 'c']],
  })
})

test('casts and string literals in a statement are not changed', async () => {
  const text = `SELECT now()::text, to_char(:at::timestamptz, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '{}'::jsonb`
  expect(await asked(text, { at: 'x' })).toMatchObject({
    text: `SELECT now()::text, to_char($1::timestamptz, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '{}'::jsonb`,
    values: ['x'],
  })
})

test('a parameter that a statement uses twice is sent as one value', async () => {
  const text = 'SELECT :id, :idle WHERE :beforeId::uuid IS NULL OR :id < :beforeId'
  expect(await asked(text, { id: 1, idle: 2, beforeId: null })).toMatchObject({
    text: 'SELECT $1, $2 WHERE $3::uuid IS NULL OR $1 < $3',
    values: [1, 2, null],
  })
})

test('parameters that the text of a statement does not name are not sent', async () => {
  expect(await asked('SELECT :id', { id: 1, name: 'x' })).toMatchObject({ values: [1] })
})

test('a missing value is an error that names the statement and the parameter', async () => {
  await expect(asked('SELECT :id, :name', { id: 1, name: undefined })).rejects.toThrow(
    /^statement test_\S+ no value for :name$/,
  )
})

test('a statement without parameters is sent without values', async () => {
  expect(await asked('SELECT 1', undefined)).toMatchObject({ text: 'SELECT 1', values: [] })
})

test('the parameters of a statement can be given by position', async () => {
  const db = recorder()
  const find = statement<never, { projectId: string; id: string }>(
    `test_${randomUUID()}`,
    'SELECT FROM vms WHERE project_id = :projectId AND id = :id',
  ).oneBy('id', 'projectId')
  await find(db, 'the id', 'the project')
  expect(db.configs[0]).toMatchObject({ values: ['the project', 'the id'] })
})

test('columns returns one array for each column, even if there are no rows', () => {
  const rows = [
    { id: 'a', max: 1 },
    { id: 'b', max: null },
  ]
  expect(columns(rows, ['id', 'max'])).toEqual({ id: ['a', 'b'], max: [1, null] })
  expect(columns([] as typeof rows, ['id'])).toEqual({ id: [] })
})

test('a statement name belongs to one statement, because a connection keeps one plan for each name', () => {
  const name = `test_${randomUUID()}`
  statement(name, 'SELECT 1')
  expect(() => statement(name, 'SELECT 2')).toThrow(`two statements have the name ${name}`)
})

test('a list query contains only the given filters, with a statement name for each combination', async () => {
  const configs: pg.QueryConfig[] = []
  const db = {
    query: async (config: pg.QueryConfig) => {
      configs.push(config)
      return { rows: [], rowCount: 0 } as unknown as pg.QueryResult
    },
  }
  const list = filteredStatement<never, { ids: string[] | null; state: 'on' | 'off' | null; limit: number }>(
    'test_list',
    (given) => `SELECT * FROM vms WHERE true${given} LIMIT :limit`,
    { ids: 'id = ANY (:ids)', state: { on: `state = 'on'`, off: `state = 'off'` } },
  )
  await list.all(db, { ids: null, state: null, limit: 1 })
  await list.all(db, { ids: ['a'], state: null, limit: 1 })
  await list.all(db, { ids: null, state: 'off', limit: 1 })
  await list.all(db, { ids: ['a'], state: 'on', limit: 1 })
  expect(configs).toEqual([
    { name: 'test_list', text: 'SELECT * FROM vms WHERE true LIMIT $1', values: [1] },
    {
      name: 'test_list_ids',
      text: 'SELECT * FROM vms WHERE true AND id = ANY ($1) LIMIT $2',
      values: [['a'], 1],
    },
    {
      name: 'test_list_state_off',
      text: `SELECT * FROM vms WHERE true AND state = 'off' LIMIT $1`,
      values: [1],
    },
    {
      name: 'test_list_ids_state_on',
      text: `SELECT * FROM vms WHERE true AND id = ANY ($1) AND state = 'on' LIMIT $2`,
      values: [['a'], 1],
    },
  ])
})
