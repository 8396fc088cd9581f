import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

/**
 * The longest possible lease. A lease that ends later than that was taken before the clock was set back, and
 * is ignored.
 */
const longestMs = 3_600_000

interface Lease {
  name: string
  holder: string
  ms: number
}

/** Returns the SQL condition that the lease `l` expired at least this long ago; `interval` is an SQL expression. */
export const isLeaseOver = (interval: string): string =>
  `(l.until <= slipway_now() - ${interval} OR l.until > slipway_now() + interval '${longestMs} milliseconds')`

const until = `slipway_now() + :ms * interval '1 millisecond'`

// If several processes try at the same time, exactly one gets the lease: the others find its row and see that
// it has not expired. The holder may take it again.
const take = statement<{ name: string }, Lease>(
  'lease_take',
  `INSERT INTO leases AS l (name, holder, until) VALUES (:name, :holder, ${until})
   ON CONFLICT (name) DO UPDATE SET holder = :holder, until = ${until}
   WHERE l.holder = :holder OR ${isLeaseOver("interval '0'")}
   RETURNING name`,
)

// The lease may have just expired, which is harmless unless another holder has taken it.
const extend = statement<{ name: string }, Lease>(
  'lease_extend',
  `UPDATE leases SET until = ${until} WHERE name = :name AND holder = :holder RETURNING name`,
)

const release = statement<never, { holder: string }>(
  'lease_release',
  'UPDATE leases SET until = slipway_now() WHERE holder = :holder AND until > slipway_now()',
)

/** Takes the lease for `ms` by the database's clock. Returns false if another holder has the lease. */
export const takeLease = async (db: Queryable, lease: Lease): Promise<boolean> =>
  (await take.one(db, lease)) !== undefined

/** Returns false if another holder has taken the lease. */
export const extendLease = async (db: Queryable, lease: Lease): Promise<boolean> =>
  (await extend.one(db, lease)) !== undefined

/** Releases all leases of a holder that stops, so that other processes can take them immediately. */
export const releaseLeases = (db: Queryable, holder: string) => release.run(db, { holder })
