import { emptyDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { describeSchema } from '@slipway/testing/postgres/schema.ts'
import pg from 'pg'
import { expect, test } from 'vitest'
import { migrate, migrations, NewerSchemaError, OlderSchemaError } from '../../src/postgres/migrate.ts'

type Query = pg.Client['query']

const versionsOf = async (query: Query) =>
  (await query('SELECT version, applied_at FROM schema_versions ORDER BY version')).rows

const addVersion = (query: Query, version: number, minCompatible: number) =>
  query('INSERT INTO schema_versions (version, min_compatible_version) VALUES ($1, $2)', [
    version,
    minCompatible,
  ])

/** Returns the schema and every row that the migrations insert. */
async function contentOf(query: Query): Promise<{ schema: string; rows: string[] }> {
  const { rows: tables } = await query(
    `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_versions' ORDER BY 1`,
  )
  const rows: string[] = []
  for (const { tablename } of tables) {
    const found = await query(`SELECT to_jsonb(t)::text AS row FROM ${tablename} t ORDER BY 1`)
    rows.push(...found.rows.map(({ row }) => `${tablename} ${row}`))
  }
  return { schema: await describeSchema((text) => query(text)), rows }
}

test('migrating a second time changes nothing', async () => {
  const { url, query } = await emptyDatabase()
  await migrate(url)
  const [content, versions] = [await contentOf(query), await versionsOf(query)]
  expect(content.rows).toContainEqual(expect.stringMatching(/^clock .*"shift": "00:00:00"/))
  expect(versions.map(({ version }) => version)).toEqual(migrations().map(({ version }) => version))
  await migrate(url)
  expect(await versionsOf(query)).toEqual(versions)
  expect(await contentOf(query)).toEqual(content)
})

test('five processes that migrate at the same time apply each migration once', async () => {
  const { url, query } = await emptyDatabase()
  await Promise.all(Array.from({ length: 5 }, () => migrate(url)))
  expect((await versionsOf(query)).map(({ version }) => version)).toEqual(
    migrations().map(({ version }) => version),
  )
  const alone = await emptyDatabase()
  await migrate(alone.url)
  expect(await contentOf(query)).toEqual(await contentOf(alone.query))
})

test('a migration that fails leaves nothing behind and can be repeated', async () => {
  const { url, query } = await emptyDatabase()
  await query('CREATE TABLE operations (id integer)')
  await expect(migrate(url)).rejects.toThrow(/"operations" already exists/)
  expect(await versionsOf(query)).toEqual([])
  await query('DROP TABLE operations')
  expect((await contentOf(query)).rows).toEqual([])
  await migrate(url)
  expect(await versionsOf(query)).toHaveLength(migrations().length)
})

test('a migration that waits for a lock does not block other processes, and continues when the lock is released', async () => {
  const { url, query } = await emptyDatabase()
  await migrate(url)
  const [holder, reader] = [new pg.Client(url), new pg.Client(url)]
  await holder.connect()
  await reader.connect()
  await holder.query('BEGIN; SELECT FROM organizations')
  const text = 'ALTER TABLE organizations ADD COLUMN added integer'
  const migrating = migrate(url, [...migrations(), { version: 999, text }])
  await eventually(async () => {
    const { rows } = await query(
      `SELECT FROM pg_locks WHERE NOT granted AND relation = 'organizations'::regclass`,
    )
    return rows.length > 0
  })
  // If the migration waited in the lock queue, the read would wait behind it until the holder commits.
  await reader.query(`SET lock_timeout = '20s'; SELECT FROM organizations`)
  await holder.query('COMMIT')
  await migrating
  expect((await versionsOf(query)).at(-1)).toMatchObject({ version: 999 })
  await holder.end()
  await reader.end()
})

test('a migration is applied even if one with a higher number was applied before', async () => {
  const { url, query } = await emptyDatabase()
  const [lower, higher] = [997, 998].map((version) => ({ version, text: `CREATE TABLE t${version} ()` }))
  await migrate(url, [higher!])
  await migrate(url, [lower!, higher!])
  expect((await versionsOf(query)).map(({ version }) => version)).toEqual([997, 998])
  await query('SELECT FROM t997, t998')
})

test('two migrations cannot have the same number', () => {
  const versions = migrations().map(({ version }) => version)
  expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b))
  expect(versions[0]).toBe(100)
})

test('a schema that a newer version made incompatible is refused in one line and not changed', async () => {
  const { url, query } = await emptyDatabase()
  await migrate(url)
  await addVersion(query, 999, 998)
  const content = await contentOf(query)
  const refusal = await migrate(url).catch((error) => error)
  expect(refusal).toBeInstanceOf(NewerSchemaError)
  expect(refusal.message).toMatch(/^this data was written by a newer version of Slipway \(schema 999, .*$/)
  expect(await contentOf(query)).toEqual(content)
})

test('a schema of a newer version that older versions can use is accepted', async () => {
  const { url, query } = await emptyDatabase()
  await migrate(url)
  await addVersion(query, 999, 1)
  await migrate(url)
  expect((await versionsOf(query)).at(-1)!.version).toBe(999)
})

test('a schema from before the first release is refused in one line and not changed', async () => {
  const { url, query } = await emptyDatabase()
  await migrate(url)
  await query('DELETE FROM schema_versions')
  await addVersion(query, 43, 20)
  const [content, versions] = [await contentOf(query), await versionsOf(query)]
  const refusal = await migrate(url).catch((error) => error)
  expect(refusal).toBeInstanceOf(OlderSchemaError)
  expect(refusal.message).toBe(
    'This data directory was created by a version before 0.1.0. Use another data directory, or delete this one.',
  )
  expect([await contentOf(query), await versionsOf(query)]).toEqual([content, versions])
})
