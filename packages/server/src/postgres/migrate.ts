import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { packageRoot } from '../package-root.ts'
import { connectionOptions, ResponseWatch, sessionKeepAlive } from './connections.ts'
import { sqlState } from './errors.ts'
import { type DatabaseServers, PrimaryClient, serversOf } from './servers.ts'

/** A server whose newest migration is older than this one cannot use the schema of this version. */
const minCompatibleVersion = 100
/** The first migration. Databases with lower versions were created during development and cannot be upgraded. */
const firstVersion = 100
/** The advisory lock that makes processes that start at the same time migrate one after another. */
const migrationLock = 7_102_001
const lockRetryMs = 50
const lockWaitMs = 400
const lockPauseMs = 200
const maxLockAttempts = 100
const lockNotAvailable = '55P03'
/** How long a statement may go without a response, except those of a migration. */
const responseMs = 20_000

/** A newer version changed the schema so that this version cannot use it. */
export class NewerSchemaError extends Error {}
/** The schema is older than the first migration. */
export class OlderSchemaError extends Error {}

export interface Migration {
  version: number
  text: string
}

export function migrations(): Migration[] {
  const directory = join(packageRoot(), 'migrations')
  return readdirSync(directory)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ version: Number(name.slice(0, 4)), text: readFileSync(join(directory, name), 'utf8') }))
}

/**
 * Brings the schema up to date, with each migration in its own transaction. Refuses a schema that it cannot
 * upgrade.
 */
export async function migrate(
  url: string | DatabaseServers,
  known: Migration[] = migrations(),
): Promise<void> {
  const servers = serversOf(url)
  const client = await servers.connect(
    () => new PrimaryClient({ ...connectionOptions, servers, options: sessionKeepAlive }),
  )
  const watch = new ResponseWatch(responseMs)
  watch.add(client)
  try {
    await takeLock(client)
    await client.query(
      'CREATE TABLE IF NOT EXISTS schema_versions (version integer PRIMARY KEY, min_compatible_version integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
    )
    const { rows } = await client.query(
      `SELECT coalesce(array_agg(version), '{}') AS applied, coalesce(max(version), 0) AS version,
              coalesce(max(min_compatible_version), 0) AS min FROM schema_versions`,
    )
    const newest = known.at(-1)?.version ?? 0
    const current = rows[0] as { applied: number[]; version: number; min: number }
    if (current.min > newest)
      throw new NewerSchemaError(
        `this data was written by a newer version of Slipway (schema ${current.version}, this version supports up to ${newest}): start that version, or use another data directory`,
      )
    if (current.version > 0 && current.version < firstVersion)
      throw new OlderSchemaError(
        'This data directory was created by a version before 0.1.0. Use another data directory, or delete this one.',
      )
    // A migration may take longer than any other statement. Keep-alive detects a lost peer.
    watch.remove(client)
    // Between releases, migrations are not always added in the order of their numbers.
    for (const migration of known)
      if (!current.applied.includes(migration.version)) await applyMigration(client, migration)
  } finally {
    watch.add(client)
    await client.end()
    watch.remove(client)
  }
}

/**
 * Migrations lock tables that other processes use. If a migration cannot get a lock, it gives up before
 * PostgreSQL's deadlock check, which runs after a second, and tries again. Otherwise, requests would fail or
 * wait for the migration.
 */
async function applyMigration(client: pg.Client, { version, text }: Migration): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      await client.query(`BEGIN; SET LOCAL lock_timeout = '${lockWaitMs}ms'`)
      await client.query(text)
      await client.query('INSERT INTO schema_versions (version, min_compatible_version) VALUES ($1, $2)', [
        version,
        minCompatibleVersion,
      ])
      await client.query('COMMIT')
      return
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      if (sqlState(error) !== lockNotAvailable || attempt >= maxLockAttempts) throw error
      await delay(lockPauseMs)
    }
}

/**
 * Waits while another process migrates. It polls, because a statement that waits could exceed its time limit.
 */
async function takeLock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query('SELECT pg_try_advisory_lock($1) AS is_taken', [migrationLock])
    if (rows[0].is_taken) return
    await delay(lockRetryMs)
  }
}
