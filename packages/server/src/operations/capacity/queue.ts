import { vmTypes } from '@slipway/contract'
import { estimate } from '../../domain/capacity/estimate.ts'
import { chooseTarget, type QueueHost, type WaitingRequest } from '../../domain/capacity/queue.ts'
import type { Database, Queryable, Tx } from '../../postgres/database.ts'
import { readServiceTime } from '../../postgres/ping.ts'
import { listQueueGpus, listRuntimesMs, listWaiting, putEstimates } from '../../store/capacity/estimates.ts'
import { endHolds, isHostOpen, lockHosts } from '../../store/capacity/holds.ts'
import { findHead } from '../../store/capacity/queue-entries.ts'
import {
  findQueue,
  lockQueues,
  pauseAccumulating,
  type Queue,
  type QueueRow,
  setQueueDue,
  startAccumulating,
  stopAccumulating,
} from '../../store/capacity/queues.ts'
import { findRequest } from '../../store/capacity/requests.ts'
import { blockOf } from './blocks.ts'
import { closeBlocked, offerGpus } from './offer.ts'

/** When to start accumulating GPUs on a target host for the first request of a queue, and for how long. */
interface Accumulation {
  afterMs: number
  /** After this time, accumulation pauses for an equally long time, so that other requests can get the GPUs. */
  maxMs: number
}

/** How many requests per queue get an estimate and an exact position. */
const maxEstimates = 100

/** Maintains one queue: the accumulation of GPUs for its first request, and the estimates of all requests. */
export async function maintainQueue(
  database: Database,
  { location, family }: Queue,
  accumulation: Accumulation,
): Promise<void> {
  const queue = { location, family }
  await stopIfOver(database, queue, accumulation)
  const now = await readServiceTime(database)
  await startIfDue(database, queue, accumulation, now)
  // A later change of the queue makes it due again.
  await database.transaction(async (tx) => {
    const [row] = await lockQueues(tx, [queue])
    await setQueueDue(tx, { ...queue, dueAt: await nextCheckAt(tx, row!, accumulation, now) })
  })
  await estimateQueue(database, queue, accumulation)
}

/** Returns when to check the queue after the check of `now`. A time that has passed since then is due at once. */
async function nextCheckAt(
  tx: Tx,
  queue: QueueRow,
  { afterMs, maxMs }: Accumulation,
  now: Date,
): Promise<Date | null> {
  if (queue.accumulating_since) return new Date(queue.accumulating_since.getTime() + maxMs)
  const head = await findHead(tx, { location: queue.location, family: queue.family })
  if (!head || head.gpus === 1) return null
  const dueAt = new Date(Math.max(head.created_at.getTime() + afterMs, queue.paused_until?.getTime() ?? 0))
  // If that time has passed, there is no host to accumulate on; a change of the queue or of a host makes the queue due again.
  return dueAt > now ? dueAt : null
}

/** Ends an accumulation that took too long, whose request no longer waits, or whose host is closed. */
async function stopIfOver(database: Database, queue: Queue, { maxMs }: Accumulation): Promise<void> {
  const before = await findQueue(database, queue)
  if (!before?.accumulator) return
  await database.transaction(async (tx) => {
    await lockHosts(tx, [before.target_host!])
    const [row] = await lockQueues(tx, [queue])
    if (row!.accumulator !== before.accumulator) return
    const request = await findRequest(tx, row!.accumulator!)
    const now = await readServiceTime(tx)
    const tookTooLong = now.getTime() >= row!.accumulating_since!.getTime() + maxMs
    const isOpen = await isHostOpen(tx, row!.target_host!)
    const isWaiting = request?.state === 'waiting' && request.blocked_by === ''
    if (isWaiting && isOpen && !tookTooLong) return
    // A request that got its hold on the target keeps the GPUs.
    if (!request?.held_hosts.includes(row!.target_host!))
      await endHolds(tx, row!.accumulator!, [row!.target_host!])
    await stopAccumulating(tx, queue)
    if (tookTooLong && isWaiting) await pauseAccumulating(tx, { ...queue, seconds: maxMs / 1000 })
    await offerGpus(tx, [row!.target_host!])
  })
}

/** Gives the first request a target host if it has waited long enough. */
async function startIfDue(
  database: Database,
  queue: Queue,
  { afterMs }: Accumulation,
  now: Date,
): Promise<void> {
  const row = await findQueue(database, queue)
  const head = await findHead(database, queue)
  if (!row || row.accumulator || !head || head.gpus === 1) return
  if (now.getTime() < head.created_at.getTime() + afterMs || (row.paused_until ?? now) > now) return
  const target = chooseTarget(await readHosts(database, queue, now.getTime()), {
    gpus: head.gpus,
    hostId: head.host_id,
  })
  if (target === undefined) return
  await database.transaction(async (tx) => {
    await lockHosts(tx, [target])
    const [locked] = await lockQueues(tx, [queue])
    const first = await findHead(tx, queue)
    if (locked!.accumulator || first?.request_id !== head.request_id) return
    const request = (await findRequest(tx, head.request_id))!
    const block = await blockOf(tx, request, queue.location)
    if (block) return closeBlocked(tx, request, block)
    await startAccumulating(tx, queue, request.id, target)
    await offerGpus(tx, [target])
  })
}

/** Returns the hosts of a queue. Reserved GPUs are free when both the reservation and the VM that uses them have ended. */
async function readHosts(db: Queryable, queue: Queue, now: number): Promise<QueueHost[]> {
  const hosts = new Map<string, QueueHost>()
  for (const { host_id, gpus, vm_id, ends_at, since, reserved_until } of await listQueueGpus(db, queue)) {
    const host = hosts.get(host_id) ?? { id: host_id, free: 0, vms: [] }
    hosts.set(host_id, host)
    const reservedUntil = reserved_until?.getTime() ?? null
    if (vm_id === null && reservedUntil === null) host.free += gpus
    else {
      const ownEnd = vm_id === null ? reservedUntil : (ends_at?.getTime() ?? null)
      const endsAt = ownEnd === null ? null : Math.max(ownEnd, reservedUntil ?? 0)
      host.vms.push({ gpus, endsAt, since: since?.getTime() ?? now, reservedUntil })
    }
  }
  return [...hosts.values()]
}

async function estimateQueue(db: Queryable, queue: Queue, { afterMs }: Accumulation): Promise<void> {
  const types = vmTypes.filter(({ family }) => family === queue.family)
  const rows = await listWaiting(db, { ...queue, limit: maxEstimates })
  const now = (await readServiceTime(db)).getTime()
  const waiting = rows.map(
    (row): WaitingRequest => ({
      id: row.request_id,
      gpus: row.gpus,
      vms: row.vms,
      isSpread: row.is_spread,
      hostId: row.host_id,
      since: row.created_at.getTime(),
      ttlMs: row.ttl_seconds === null ? null : row.ttl_seconds * 1000,
    }),
  )
  // Hypothetical new requests, to estimate when a request that arrives now would be granted.
  const next = [...new Set(types.map(({ gpuCount }) => gpuCount))].map(
    (gpus): WaitingRequest => ({
      id: `new ${gpus}`,
      gpus,
      vms: 1,
      isSpread: false,
      hostId: null,
      since: now,
      ttlMs: null,
      isHypothetical: true,
    }),
  )
  const estimates = estimate({
    now,
    hosts: await readHosts(db, queue, now),
    waiting: rows.length < maxEstimates ? [...waiting, ...next] : waiting,
    runtimesMs: await listRuntimesMs(
      db,
      types.map(({ name }) => name),
    ),
    accumulateAfterMs: afterMs,
  })
  const likelyAtByGpus = new Map<number, number>()
  for (const { id, gpus } of next) {
    const likelyAt = estimates.get(id)?.likelyAt ?? null
    if (likelyAt !== null) likelyAtByGpus.set(gpus, likelyAt)
    estimates.delete(id)
  }
  await putEstimates(db, queue, estimates, likelyAtByGpus)
}
