import { vmTypes } from '@slipway/contract'
import { estimate } from '../../domain/capacity/estimate.ts'
import { chooseTarget, type LaneHost, type Waiting } from '../../domain/capacity/lane.ts'
import type { Database, Queryable, Tx } from '../../postgres/database.ts'
import { pingDatabase } from '../../postgres/ping.ts'
import { listLaneGpus, listLivesMs, listWaiting, putEstimates } from '../../store/capacity/estimates.ts'
import { endHolds, isHostOpen, lockHosts } from '../../store/capacity/holds.ts'
import {
  findLane,
  type Lane,
  type LaneRow,
  lockLanes,
  pauseAccumulating,
  setLaneDue,
  startAccumulating,
  stopAccumulating,
} from '../../store/capacity/lanes.ts'
import { findHead } from '../../store/capacity/places.ts'
import { findRequest } from '../../store/capacity/requests.ts'
import { blockOf } from './blocks.ts'
import { closeBlocked, offerGpus } from './offer.ts'

/** When the first request gets a host whose GPUs are held for it until they suffice, and for how long. */
interface Accumulation {
  afterMs: number
  /** Then the GPUs go to others, for as long. */
  maxMs: number
}

/** The requests with an estimate and an exact position. */
const mostEstimates = 100

/** Looks after one queue: what its first request accumulates, and the estimates of all. */
export async function lookAtLane(
  database: Database,
  { location, family }: Lane,
  accumulation: Accumulation,
): Promise<void> {
  const lane = { location, family }
  await stopIfOver(database, lane, accumulation)
  await startIfDue(database, lane, accumulation)
  // A change of the queue from here on makes it due again.
  await database.transaction(async (tx) => {
    const [row] = await lockLanes(tx, [lane])
    await setLaneDue(tx, { ...lane, dueAt: await nextLook(tx, row!, accumulation) })
  })
  await estimateLane(database, lane, accumulation)
}

async function nextLook(tx: Tx, lane: LaneRow, { afterMs, maxMs }: Accumulation): Promise<Date | null> {
  if (lane.accumulating_since) return new Date(lane.accumulating_since.getTime() + maxMs)
  const head = await findHead(tx, { location: lane.location, family: lane.family })
  if (!head || head.gpus === 1) return null
  const dueAt = new Date(Math.max(head.created_at.getTime() + afterMs, lane.paused_until?.getTime() ?? 0))
  // If it is due already, there is no host to accumulate on; a change of the queue or of a host is a new chance.
  return dueAt > (await pingDatabase(tx)) ? dueAt : null
}

/** Ends the accumulation of a request that no longer waits, that is too slow, or whose host takes no VMs any more. */
async function stopIfOver(database: Database, lane: Lane, { maxMs }: Accumulation): Promise<void> {
  const before = await findLane(database, lane)
  if (!before?.accumulator) return
  await database.transaction(async (tx) => {
    await lockHosts(tx, [before.target_host!])
    const [row] = await lockLanes(tx, [lane])
    if (row!.accumulator !== before.accumulator) return
    const request = await findRequest(tx, row!.accumulator!)
    const now = await pingDatabase(tx)
    const isOver = now.getTime() >= row!.accumulating_since!.getTime() + maxMs
    const isOpen = await isHostOpen(tx, row!.target_host!)
    const isWaiting = request?.state === 'waiting' && request.blocked_by === ''
    if (isWaiting && isOpen && !isOver) return
    // A request that got its hold on the target keeps the GPUs.
    if (!request?.held_hosts.includes(row!.target_host!))
      await endHolds(tx, row!.accumulator!, [row!.target_host!])
    await stopAccumulating(tx, lane)
    if (isOver && isWaiting) await pauseAccumulating(tx, { ...lane, seconds: maxMs / 1000 })
    await offerGpus(tx, [row!.target_host!])
  })
}

/** Gives the first request a target host, when it has waited long enough. */
async function startIfDue(database: Database, lane: Lane, { afterMs }: Accumulation): Promise<void> {
  const row = await findLane(database, lane)
  const head = await findHead(database, lane)
  if (!row || row.accumulator || !head || head.gpus === 1) return
  const now = await pingDatabase(database)
  if (now.getTime() < head.created_at.getTime() + afterMs || (row.paused_until ?? now) > now) return
  const target = chooseTarget(await readHosts(database, lane, now.getTime()), {
    gpus: head.gpus,
    hostId: head.host_id,
  })
  if (target === undefined) return
  await database.transaction(async (tx) => {
    await lockHosts(tx, [target])
    const [locked] = await lockLanes(tx, [lane])
    const first = await findHead(tx, lane)
    if (locked!.accumulator || first?.request_id !== head.request_id) return
    const request = (await findRequest(tx, head.request_id))!
    const block = await blockOf(tx, request, lane.location)
    if (block) return closeBlocked(tx, request, block)
    await startAccumulating(tx, lane, request.id, target)
    await offerGpus(tx, [target])
  })
}

/** Returns the hosts of a queue. Reserved GPUs are free when the reservation has ended, and its VM too. */
async function readHosts(db: Queryable, lane: Lane, now: number): Promise<LaneHost[]> {
  const hosts = new Map<string, LaneHost>()
  for (const { host_id, gpus, vm_id, ends_at, since, reserved_until } of await listLaneGpus(db, lane)) {
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

async function estimateLane(db: Queryable, lane: Lane, { afterMs }: Accumulation): Promise<void> {
  const types = vmTypes.filter(({ family }) => family === lane.family)
  const rows = await listWaiting(db, { ...lane, most: mostEstimates })
  const now = (await pingDatabase(db)).getTime()
  const waiting = rows.map(
    (row): Waiting => ({
      id: row.request_id,
      gpus: row.gpus,
      vms: row.vms,
      isSpread: row.is_spread,
      hostId: row.host_id,
      since: row.created_at.getTime(),
      ttlMs: row.ttl_seconds === null ? null : row.ttl_seconds * 1000,
    }),
  )
  // What a request that comes next would be told.
  const next: Waiting = {
    id: '',
    gpus: 1,
    vms: 1,
    isSpread: false,
    hostId: null,
    since: now,
    ttlMs: null,
    isImagined: true,
  }
  const estimates = estimate({
    now,
    hosts: await readHosts(db, lane, now),
    waiting: rows.length < mostEstimates ? [...waiting, next] : waiting,
    livesMs: await listLivesMs(
      db,
      types.map(({ name }) => name),
    ),
    accumulateAfterMs: afterMs,
  })
  const likelyAt = estimates.get('')?.likelyAt ?? null
  estimates.delete('')
  await putEstimates(db, lane, estimates, likelyAt)
}
