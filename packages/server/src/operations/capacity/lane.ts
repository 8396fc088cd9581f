import { vmTypes } from '@slipway/contract'
import { chooseTarget, estimate, type LaneHost, type Waiting } from '../../domain/capacity-estimate.ts'
import type { Database, Queryable, Tx } from '../../postgres/database.ts'
import { pingDatabase } from '../../postgres/ping.ts'
import { listLaneHosts, listLivesMs, listWaiting, putEstimates } from '../../store/capacity/estimates.ts'
import { endHolds, lockHosts } from '../../store/capacity/holds.ts'
import {
  findHead,
  findLane,
  type Lane,
  type LaneRow,
  lockLanes,
  pauseAccumulating,
  setLaneDue,
  startAccumulating,
  stopAccumulating,
} from '../../store/capacity/lanes.ts'
import { findRequest } from '../../store/capacity/requests.ts'
import { blockOf } from './blocks.ts'
import { closeBlocked, offerGpus } from './offer.ts'

/** After this time, GPUs of one host are held for the first request until there are enough of them. */
export const accumulateAfterMs = 600_000
/** The longest time that GPUs are accumulated for one request. Then other requests get them for the same time. */
const accumulateMaxMs = 14_400_000
/** The number of requests that get an estimate and an exact position. */
const mostEstimates = 100

/** Updates one queue: the GPUs that its first request accumulates, and the estimates of all requests. */
export async function lookAtLane(database: Database, { location, family }: Lane): Promise<void> {
  const lane = { location, family }
  await stopIfOver(database, lane)
  await startIfDue(database, lane)
  await database.transaction(async (tx) => {
    const [row] = await lockLanes(tx, [lane])
    await estimateLane(tx, lane)
    await setLaneDue(tx, { ...lane, dueAt: await nextLook(tx, row!) })
  })
}

async function nextLook(tx: Tx, lane: LaneRow): Promise<Date | null> {
  if (lane.accumulating_since) return new Date(lane.accumulating_since.getTime() + accumulateMaxMs)
  const head = await findHead(tx, { location: lane.location, family: lane.family })
  if (!head || head.gpus === 1) return null
  const dueAt = new Date(
    Math.max(head.created_at.getTime() + accumulateAfterMs, lane.paused_until?.getTime() ?? 0),
  )
  // A time in the past means that no host can accumulate GPUs. A change of the queue or of a host triggers the next try.
  return dueAt > (await pingDatabase(tx)) ? dueAt : null
}

/** Ends the accumulation if the request no longer waits, if it takes too long, or if the host no longer accepts VMs. */
async function stopIfOver(database: Database, lane: Lane): Promise<void> {
  const before = await findLane(database, lane)
  if (!before?.accumulator) return
  await database.transaction(async (tx) => {
    await lockHosts(tx, [before.target_host!])
    const [row] = await lockLanes(tx, [lane])
    if (row!.accumulator !== before.accumulator) return
    const request = await findRequest(tx, row!.accumulator!)
    const now = await pingDatabase(tx)
    const isOver = now.getTime() >= row!.accumulating_since!.getTime() + accumulateMaxMs
    const isOpen = (await listLaneHosts(tx, lane)).some(({ id }) => id === row!.target_host)
    const isWaiting = request?.state === 'waiting' && request.blocked_by === ''
    if (isWaiting && isOpen && !isOver) return
    // A request that got its hold on the target keeps the GPUs.
    if (request?.held_host !== row!.target_host) await endHolds(tx, row!.accumulator!, row!.target_host!)
    await stopAccumulating(tx, lane)
    if (isOver && isWaiting) await pauseAccumulating(tx, { ...lane, seconds: accumulateMaxMs / 1000 })
    await offerGpus(tx, [row!.target_host!])
  })
}

/** Gives the first request a target host if it has waited long enough. */
async function startIfDue(database: Database, lane: Lane): Promise<void> {
  const row = await findLane(database, lane)
  const head = await findHead(database, lane)
  if (!row || row.accumulator || !head || head.gpus === 1) return
  const now = await pingDatabase(database)
  if (now.getTime() < head.created_at.getTime() + accumulateAfterMs || (row.paused_until ?? now) > now) return
  const target = chooseTarget(await readHosts(database, lane), { gpus: head.gpus, hostId: head.host_id })
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

const readHosts = async (db: Queryable, lane: Lane): Promise<LaneHost[]> =>
  (await listLaneHosts(db, lane)).map(({ id, free, vms }) => ({
    id,
    free,
    vms: vms.map(({ gpus, ends_at, since }) => ({
      gpus,
      endsAt: ends_at === null ? null : Date.parse(ends_at),
      since: Date.parse(since),
    })),
  }))

async function estimateLane(tx: Tx, lane: Lane): Promise<void> {
  const types = vmTypes.filter(({ family }) => family === lane.family)
  const rows = await listWaiting(tx, { ...lane, most: mostEstimates })
  const now = (await pingDatabase(tx)).getTime()
  const waiting = rows.map(
    (row): Waiting => ({
      id: row.request_id,
      gpus: row.gpus,
      hostId: row.host_id,
      since: row.created_at.getTime(),
      ttlMs: row.ttl_seconds === null ? null : row.ttl_seconds * 1000,
    }),
  )
  // The estimate that the next new request would get.
  const next: Waiting = { id: '', gpus: 1, hostId: null, since: now, ttlMs: null }
  const estimates = estimate({
    now,
    hosts: await readHosts(tx, lane),
    waiting: rows.length < mostEstimates ? [...waiting, next] : waiting,
    livesMs: await listLivesMs(
      tx,
      types.map(({ name }) => name),
    ),
    accumulateAfterMs,
  })
  const likelyAt = estimates.get('')?.likelyAt ?? null
  estimates.delete('')
  await putEstimates(tx, lane, estimates, likelyAt)
}
