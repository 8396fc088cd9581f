import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

/** A lease that ends later than any real one was taken before the clock was set back, and does not count. */
const longestMs = 3_600_000

interface Lease {
  name: string
  holder: string
  ms: number
}

/** The condition that the lease `l` has been over for an interval. */
export const isLeaseOver = (since: string): string =>
  `(l.until <= slipway_now() - ${since} OR l.until > slipway_now() + interval '${longestMs} milliseconds')`

const until = `slipway_now() + :ms * interval '1 millisecond'`

// If several processes ask at once, exactly one gets the lease: the others find its row and see that it is not over.
// The holder may take it again.
const take = statement<{ name: string }, Lease>(
  'lease_take',
  `INSERT INTO leases AS l (name, holder, until) VALUES (:name, :holder, ${until})
   ON CONFLICT (name) DO UPDATE SET holder = :holder, until = ${until}
   WHERE l.holder = :holder OR ${isLeaseOver("interval '0'")}
   RETURNING name`,
)

// It may have been over for a moment, which does no harm as long as no other holder took it.
const extend = statement<{ name: string }, Lease>(
  'lease_extend',
  `UPDATE leases SET until = ${until} WHERE name = :name AND holder = :holder RETURNING name`,
)

const release = statement<never, { holder: string }>(
  'lease_release',
  'UPDATE leases SET until = slipway_now() WHERE holder = :holder AND until > slipway_now()',
)

/** Returns whether the holder has the lease now, for `ms` by the database's clock. */
export const takeLease = async (db: Queryable, lease: Lease): Promise<boolean> =>
  (await take.one(db, lease)) !== undefined

/** Returns false when another holder has taken the lease. */
export const extendLease = async (db: Queryable, lease: Lease): Promise<boolean> =>
  (await extend.one(db, lease)) !== undefined

/** Releases all leases of a holder that stops, so that others can take them at once. */
export const releaseLeases = (db: Queryable, holder: string) => release.run(db, { holder })
