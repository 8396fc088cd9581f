import { createHash } from 'node:crypto'
import { migrate, migrations } from '@slipway/server/postgres/migrate.ts'
import type { TestProject } from 'vitest/node'
import { query, withDatabase } from '../database.ts'
import { openTestPostgres } from '../postgres/server.ts'

/** Starts one PostgreSQL for the whole run, and creates a migrated template that each test file clones. */
export default async function setup(project: TestProject) {
  const embedded = await openTestPostgres()
  const template = `template_${createHash('sha256').update(JSON.stringify(migrations())).digest('hex').slice(0, 16)}`
  const databases = await query<{ datname: string }>(
    embedded.superuserUrl,
    `SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%' OR datname LIKE 'template\\_%'`,
  )
  for (const { datname } of databases)
    if (datname !== template)
      await query(embedded.superuserUrl, `DROP DATABASE IF EXISTS "${datname}" WITH (FORCE)`)
  if (!databases.some(({ datname }) => datname === template)) {
    await query(embedded.superuserUrl, `CREATE DATABASE ${template}`)
    await migrate(withDatabase(embedded.superuserUrl, template))
  }
  project.provide('postgresUrl', embedded.superuserUrl)
  project.provide('templateDatabase', template)
  return () => embedded.stop()
}
