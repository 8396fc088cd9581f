import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

/** A lease that reaches further than any real one was taken before somebody turned the clock back: it binds nobody. */
const longestMs = 3_600_000

interface Lease {
  name: string
  holder: string
  ms: number
}

/** Whether the lease `l` has been over for this long, an interval. */
export const isLeaseOver = (since: string): string =>
  `(l.until <= slipway_now() - ${since} OR l.until > slipway_now() + interval '${longestMs} milliseconds')`

const until = `slipway_now() + :ms * interval '1 millisecond'`

// Of those who ask at once exactly one gets it: the others meet its row and see that it is not over. The holder itself
// may go on with it.
const take = statement<{ name: string }, Lease>(
  'lease_take',
  `INSERT INTO leases AS l (name, holder, until) VALUES (:name, :holder, ${until})
   ON CONFLICT (name) DO UPDATE SET holder = :holder, until = ${until}
   WHERE l.holder = :holder OR ${isLeaseOver("interval '0'")}
   RETURNING name`,
)

// Nobody else has taken it since: that it was over for a moment does no harm.
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

/** Returns false when another holder has taken it meanwhile. */
export const extendLease = async (db: Queryable, lease: Lease): Promise<boolean> =>
  (await extend.one(db, lease)) !== undefined

/** Lets others have at once what a holder that leaves has or had. */
export const releaseLeases = (db: Queryable, holder: string) => release.run(db, { holder })
