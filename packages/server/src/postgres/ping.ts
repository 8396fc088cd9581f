import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

const serviceTime = statement<{ now: Date }>('ping', 'SELECT slipway_now() AS now')

/** Returns the service's time. This also shows that the database responds. */
export async function readServiceTime(db: Queryable): Promise<Date> {
  return (await serviceTime.one(db))!.now
}

const tryWrite = statement('readiness_write', 'UPDATE readiness SET checked_at = slipway_now()')

/**
 * Throws if the database does not accept writes. If it is read-only or its disk is full, it may still serve
 * reads.
 */
export const writeToDatabase = (db: Queryable): Promise<number> => tryWrite.run(db)
