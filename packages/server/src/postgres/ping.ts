import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

const ping = statement<{ now: Date }>('ping', 'SELECT slipway_now() AS now')

/** Returns the service's time, which also proves that the database answers. */
export async function pingDatabase(db: Queryable): Promise<Date> {
  return (await ping.one(db))!.now
}
