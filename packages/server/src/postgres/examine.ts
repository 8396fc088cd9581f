import pg from 'pg'
import { connectionOptions } from './connections.ts'

/**
 * Facts about a database, for operators. Values from Slipway's own tables are empty before the first
 * migration.
 */
export interface DatabaseFacts {
  majorVersion: number
  settings: Record<string, string>
  isReadOnly: boolean
  isSuperuser: boolean
  isEncrypted: boolean
  connectionCount: number
  nowMs: number
  /** True if the write-ahead log is archived for point-in-time recovery. */
  isArchiving: boolean
  /** True if the last attempt to archive the write-ahead log failed. */
  hasArchiveFailed: boolean
  schemaVersion: number
  secretKeyId: string | null
  engineProblems: { name: string; problem: string }[]
  webhookUrls: string[]
}

const wanted = [
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'max_connections',
  'server_encoding',
  'autovacuum',
  'data_checksums',
]

/** Reads the facts on a separate connection and writes nothing. This also works if the service does not start. */
export async function examineDatabase(url: string): Promise<DatabaseFacts> {
  const client = new pg.Client({
    ...connectionOptions,
    connectionString: url,
    options: '-c statement_timeout=10s',
  })
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query(selectServerFacts, [wanted])
    const { rows: tables } = await client.query(`SELECT to_regclass('schema_versions') IS NOT NULL AS exist`)
    return { ...rows[0], ...(tables[0].exist ? (await client.query(selectServiceFacts)).rows[0] : empty) }
  } finally {
    await client.end()
  }
}

const selectServerFacts = `
  SELECT current_setting('server_version_num')::int / 10000 AS "majorVersion",
         (SELECT json_object_agg(name, setting) FROM pg_settings WHERE name = ANY ($1)) AS settings,
         current_setting('transaction_read_only') = 'on' AS "isReadOnly",
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS "isSuperuser",
         (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS "isEncrypted",
         (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS "connectionCount",
         extract(epoch FROM clock_timestamp())::float8 * 1000 AS "nowMs",
         current_setting('archive_mode') <> 'off' AS "isArchiving",
         (SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)
          FROM pg_stat_archiver) AS "hasArchiveFailed"`

const selectServiceFacts = `
  SELECT (SELECT max(version) FROM schema_versions) AS "schemaVersion",
         (SELECT id FROM secret_key) AS "secretKeyId",
         (SELECT coalesce(json_agg(json_build_object('name', name, 'problem', engine_problem)), '[]')
          FROM locations WHERE engine_problem <> '') AS "engineProblems",
         ARRAY(SELECT url FROM webhooks WHERE state = 'active' ORDER BY id LIMIT 5) AS "webhookUrls"`

const empty = { schemaVersion: 0, secretKeyId: null, engineProblems: [], webhookUrls: [] }
