import { setTimeout as delay } from 'node:timers/promises'
import type { DevBody, DevClock } from '@slipway/contract'
import { thresholds } from '../billing/budgets.ts'
import type { BillingTasks } from '../billing/tasks.ts'
import { Failure, invalidField } from '../domain/failure.ts'
import type { MailDelivery } from '../mail/delivery.ts'
import { time } from '../postgres/time.ts'
import type { Reconciler } from '../reconcile/reconciler.ts'
import type { Services } from '../services.ts'
import { warnAheadS } from '../store/compute/vm-expiry.ts'
import { findClock, findNextDue, listDueOperations, setClock, stepClock } from '../store/dev/clock.ts'
import { findDueWork, type WorkKind } from '../store/fleet/due.ts'
import { silenceMs } from '../store/fleet/locations.ts'
import { listWatchedLocations } from '../store/metrics/idle.ts'
import type { WebhookDelivery } from '../webhooks/delivery.ts'

const maxWorkMs = 30_000
const pollMs = 10
/**
 * Kinds of work that must be done before the clock is moved further. The kinds `hosts` and `gpus` are not
 * included, because they wait for reports, which have their own schedule.
 */
const awaitedKinds: WorkKind[] = [
  'operations',
  'events',
  'webhooks',
  'expiry',
  'suspension',
  'firewalls',
  'maintenance',
  'capacity',
]

/** The parts of a server whose work becomes due at certain times. */
export interface Workers {
  services: Services
  reconciler: Reconciler
  billing: BillingTasks
  webhooks: WebhookDelivery
  mail: MailDelivery
}

export async function readClock({ services }: Workers): Promise<DevClock> {
  const { mode, now, rate } = await findClock(services.database)
  return { mode, now: time(now), rate }
}

export async function changeClock(
  workers: Workers,
  { mode, now, rate }: DevBody<'clockSet'>,
): Promise<DevClock> {
  if (mode === 'scaled' && rate === undefined) throw invalidField('rate', 'is required to scale the clock')
  if (mode !== 'scaled' && rate !== undefined)
    throw invalidField('rate', 'is allowed only with the mode scaled')
  if (now !== undefined) await advanceClock(workers, { to: now })
  const current = await findClock(workers.services.database)
  await setClock(workers.services.database, { mode, now: current.now, rate: rate ?? 1 })
  return readClock(workers)
}

/**
 * Moves the clock from one due time to the next, and does the work that is due at each of them, so that
 * everything happens at the right time. Returns when all due work is done.
 */
export async function advanceClock(
  workers: Workers,
  { seconds, to }: DevBody<'clockAdvance'>,
): Promise<DevClock> {
  const { database, config } = workers.services
  const start = (await findClock(database)).now
  if ((seconds === undefined) === (to === undefined))
    throw new Failure('invalid_argument', 'Send either seconds or to, not both.')
  const target = to === undefined ? new Date(start.getTime() + seconds! * 1000) : new Date(to)
  if (target < start) throw invalidField('to', `must not be earlier than the service's time, ${time(start)}`)
  const limit = performance.now() + maxWorkMs
  const { rollupAtUtc } = config.billing
  const { unreachableS } = config.operations
  let todo = { readsEngines: true, runsBilling: true }
  for (let isEnd = target <= start; ; ) {
    await finishDueWork(workers, limit, todo)
    if (isEnd) return readClock(workers)
    const { now } = await findClock(database)
    const params = { now, warnAheadS, rollupAtUtc, thresholds, silenceMs, unreachableS }
    const due = await findNextDue(database, params)
    const next = [due.work, due.billing, due.silence].reduce<Date>(
      (first, at) => (at && at < first ? at : first),
      target,
    )
    isEnd = next >= target
    const isReached = (at: Date | null) => isEnd || (at !== null && at <= next)
    todo = { readsEngines: isReached(due.silence), runsBilling: isReached(due.billing) }
    // A clock that is not frozen may be past the target by now.
    await database.transaction((tx) => stepClock(tx, Math.max(0, next.getTime() - now.getTime())))
  }
}

/**
 * Does everything that is due now. After 30 seconds, throws a 409 error that lists the unfinished work. What
 * engines report does not depend on the clock, so engines are read only when the advance begins and ends, and
 * when a host or GPU waits for a report.
 */
async function finishDueWork(
  workers: Workers,
  limit: number,
  { readsEngines, runsBilling }: { readsEngines: boolean; runsBilling: boolean },
): Promise<void> {
  const { reconciler, billing, webhooks, mail, services } = workers
  const { database, engines, signals } = services
  const find = () => findDueWork(database, { locations: ['', ...engines.keys()], turns: [], restsMs: [] })
  let found = await find()
  let isReading = readsEngines
  let sampled = readsEngines ? [...engines.keys()] : await listWatchedLocations(database)
  let wasQuiet = false
  for (;;) {
    signals.send('operations')
    if (isReading || found.hosts || found.gpus) {
      await reconciler.reports()
      await reconciler.groups()
    }
    if (sampled.length > 0) await reconciler.samples(sampled)
    sampled = []
    isReading = false
    if (found.firewalls) await reconciler.firewalls()
    if (found.expiry) await reconciler.expiry()
    if (found.suspension) await reconciler.suspension()
    if (found.maintenance) await reconciler.maintenance()
    if (found.capacity) await reconciler.capacity()
    if (runsBilling) await billing.once()
    await reconciler.stamp()
    await webhooks.once()
    if (services.config.mail) await mail.once()
    const left = await waitForOperations(workers, limit)
    found = await find()
    const kinds = awaitedKinds.filter((kind) => found[kind])
    const isQuiet = left.length === 0 && kinds.length === 0
    // GPUs that were released in this iteration return to stock with the next report.
    if (isQuiet && (wasQuiet || !found.gpus)) return
    wasQuiet = isQuiet
    if (!isQuiet && performance.now() > limit)
      throw unfinishedWork((await findClock(database)).now, [...left, ...kinds])
  }
}

/** Waits while operations are due or running, and returns those that do not end in time. */
async function waitForOperations({ services: { database } }: Workers, limit: number): Promise<string[]> {
  for (;;) {
    const due = await listDueOperations(database)
    if (due.length === 0 || performance.now() > limit) return due.map(({ id, kind }) => `${kind} ${id}`)
    await delay(pollMs)
  }
}

const unfinishedWork = (now: Date, left: string[]) =>
  new Failure(
    'conflict',
    `The clock stopped at ${time(now)}, because the following did not finish within 30 s: ${left.join(', ')}.`,
  )
