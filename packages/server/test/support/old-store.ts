import { randomBytes } from 'node:crypto'
import { withDatabase } from '@slipway/testing/database.ts'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { migrations } from '../../src/store/migrate.ts'

/** A database with nothing in it. */
export async function emptyDatabase(): Promise<{ url: string; query: pg.Client['query'] }> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const admin = await connect(inject('postgresUrl'))
  await admin.query(`CREATE DATABASE ${name}`)
  const url = withDatabase(inject('postgresUrl'), name)
  const client = await connect(url)
  onTestFinished(async () => {
    await client.end()
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
    await admin.end()
  })
  return { url, query: client.query.bind(client) as pg.Client['query'] }
}

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

/** A store as a version before this step left it. */
export async function storeBefore(version: number) {
  const store = await emptyDatabase()
  await store.query(
    'CREATE TABLE schema_versions (version integer PRIMARY KEY, min_compatible_version integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
  )
  for (const step of migrations().filter((each) => each.version < version)) {
    await store.query(step.text)
    await store.query('INSERT INTO schema_versions VALUES ($1, 1)', [step.version])
  }
  return store
}
