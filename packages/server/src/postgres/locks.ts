import type { Tx } from './database.ts'
import { statement } from './statement.ts'

/** Advisory locks. Each one protects an activity that only one process may do at a time. */
const numbers = {
  applyConfig: 7_102_010,
  demo: 7_102_011,
  usageRollup: 7_102_020,
  /**
   * Shared by transactions that make firewalls outdated; held exclusively by a transaction that marks a host
   * as up because no firewall is outdated.
   */
  returningHosts: 7_102_030,
  prices: 7_102_021,
  operators: 7_102_040,
  secretKey: 7_102_050,
} as const

const take = statement<never, { number: number }>('advisory_lock', 'SELECT pg_advisory_xact_lock(:number)')

const share = statement<never, { number: number }>(
  'advisory_lock_shared',
  'SELECT pg_advisory_xact_lock_shared(:number)',
)

/** Waits for the lock, and holds it exclusively until the transaction ends. */
export async function holdLock(tx: Tx, name: keyof typeof numbers): Promise<void> {
  await take.run(tx, { number: numbers[name] })
}

/**
 * Waits for an exclusive holder, then shares the lock until the transaction ends. Other transactions can
 * share the lock, but not hold it exclusively.
 */
export async function shareLock(tx: Tx, name: keyof typeof numbers): Promise<void> {
  await share.run(tx, { number: numbers[name] })
}
