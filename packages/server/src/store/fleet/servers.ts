import type { Queryable } from '../../postgres/database.ts'
import { connectionName } from '../../postgres/signals.ts'
import { statement } from '../../postgres/statement.ts'

const prefix = `${connectionName('')} `

// A connection ends with its process, so a server that crashed is not listed.
const names = statement<{ name: string }, { like: string }>(
  'server_connections',
  `SELECT application_name AS name FROM pg_stat_activity
   WHERE datname = current_database() AND application_name LIKE :like ORDER BY backend_start`,
)

/** Lists the URLs of all servers that run on this database, oldest first. A URL is truncated after 47 characters. */
export const listServerUrls = async (db: Queryable): Promise<string[]> =>
  (await names.all(db, { like: `${prefix}%` })).map(({ name }) => name.slice(prefix.length))

/** Returns whether a server that runs on this database has announced this URL. */
export const isServed = async (db: Queryable, url: string): Promise<boolean> =>
  (await listServerUrls(db)).some((each) => connectionName(each) === connectionName(url))
