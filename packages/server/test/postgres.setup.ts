import { createHash } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { openEmbedded } from '../src/store/embedded/index.ts'
import { migrate, migrations } from '../src/store/migrate.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
    templateDatabase: string
  }
}

/** One PostgreSQL for the whole run, and a migrated template that each test file clones. */
export default async function setup(project: TestProject) {
  const dataDir = join(import.meta.dirname, '../../../.cache/test-postgres')
  const embedded = await openEmbedded({
    dataDir,
    log: () => {},
    // Tests kill servers, not PostgreSQL: nothing here has to survive a power cut.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '400' },
  })
  const template = `template_${createHash('sha256').update(JSON.stringify(migrations())).digest('hex').slice(0, 16)}`
  const admin = new pg.Client({ connectionString: embedded.url })
  await admin.connect()
  const { rows } = await admin.query(
    `SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%' OR (datname LIKE 'template\\_%' AND datname <> $1)`,
    [template],
  )
  for (const { datname } of rows) await admin.query(`DROP DATABASE IF EXISTS "${datname}" WITH (FORCE)`)
  const { rowCount } = await admin.query('SELECT FROM pg_database WHERE datname = $1', [template])
  if (rowCount === 0) {
    await admin.query(`CREATE DATABASE ${template}`)
    await migrate(withDatabase(embedded.url, template))
  }
  await admin.end()
  project.provide('postgresUrl', embedded.url)
  project.provide('templateDatabase', template)
  return () => embedded.stop()
}

function withDatabase(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.toString()
}
