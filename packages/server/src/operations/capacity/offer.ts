import { type OpenHost, placeGroup, takeGpus } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import {
  dropHoldsOfClosedHosts,
  endHolds,
  holdGpus,
  listBrokenHolds,
  listHeldGpus,
  listOpenHosts,
  lockHosts,
} from '../../store/capacity/holds.ts'
import { findNextEntries, type QueueEntry, setEntriesOpen } from '../../store/capacity/queue-entries.ts'
import {
  listQueuesOfHosts,
  lockQueues,
  lockQueuesOfHosts,
  lockQueuesOfRequest,
  type QueueRow,
  recordTurn,
  touchQueuesOfRequest,
} from '../../store/capacity/queues.ts'
import {
  blockRequest,
  findRequest,
  makeRequestDue,
  type RequestRow,
  setHeld,
  setWaiting,
} from '../../store/capacity/requests.ts'
import { scheduleReservationCheck } from '../../store/capacity/reservations.ts'
import { tryLockHostsForGroup } from '../../store/compute/group-hosts.ts'
import { type Block, blockOf } from './blocks.ts'
import { collectGpus } from './collect.ts'
import { emitRequest } from './events.ts'

/** How often a blocked request is checked again. A change of its quota is noticed immediately. */
const usualRecheckS = 30

/**
 * Offers the free GPUs of hosts to reservations, then to the requests that wait for such GPUs; the rest stays in stock. It is
 * called wherever GPUs become free, in the same transaction, so that no creation can overtake the queue. It only sets holds.
 * The transaction has locked the hosts.
 */
export async function offerGpus(tx: Tx, hostIds: string[]): Promise<void> {
  if (hostIds.length === 0) return
  // The statements are sent in one round trip and run in this order: hosts and entries are read after the queues
  // are locked.
  const [queues, locked, open, entries] = await Promise.all([
    listQueuesOfHosts(tx, hostIds),
    lockQueuesOfHosts(tx, hostIds),
    listOpenHosts(tx, hostIds),
    findNextEntries(tx, hostIds, []),
  ])
  if (locked.length < queues.length) {
    await lockQueues(tx, queues)
    return offerGpus(tx, hostIds)
  }
  for (const queue of locked) {
    const isHere = ({ location, family }: { location: string; family: string }) =>
      location === queue.location && family === queue.family
    const hosts = open.filter(isHere)
    if (queue.has_reservations) await collectGpus(tx, queue, hosts)
    if (queue.waiting === 0) continue
    await accumulate(tx, queue, hosts)
    // The first entry of each queue was read before anything changed. With several queues, a request can be the first in more
    // than one, and get its GPUs in one of them.
    const isUnchanged = locked.length === 1 && !queue.has_reservations && queue.target_host === null
    await offerInTurn(tx, queue, hosts, isUnchanged ? entries.find(isHere) : await nextEntry(tx, hosts, []))
  }
}

const nextEntry = async (tx: Tx, hosts: OpenHost[], skipped: string[]): Promise<QueueEntry | undefined> =>
  (
    await findNextEntries(
      tx,
      hosts.map(({ id }) => id),
      skipped,
    )
  )[0]

/**
 * Holds free GPUs of the target host for the request that accumulates them. When there are enough, the
 * request gets its hold.
 */
async function accumulate(tx: Tx, queue: QueueRow, hosts: OpenHost[]): Promise<void> {
  const target = hosts.find(({ id }) => id === queue.target_host)
  if (!target) return
  const request = (await findRequest(tx, queue.accumulator!))!
  if (request.state !== 'waiting') return
  const held = (await listHeldGpus(tx, request.id)).length
  const taken = target.gpus.slice(0, Math.min(request.gpus - held, target.freeGpus))
  await holdGpus(
    tx,
    request.id,
    'request',
    taken.map(({ id }) => id),
  )
  target.gpus = target.gpus.filter((gpu) => !taken.includes(gpu))
  target.freeGpus -= taken.length
  if (held + taken.length === request.gpus) await becomeHeld(tx, queue, request, [target.id])
}

/**
 * Gives GPUs to the first request that fits, until none fits. Smaller requests may overtake one that does not
 * fit.
 */
async function offerInTurn(
  tx: Tx,
  queue: QueueRow,
  hosts: OpenHost[],
  start: QueueEntry | undefined,
): Promise<void> {
  const skipped: string[] = []
  for (let next = start; next; next = await nextEntry(tx, hosts, skipped)) {
    const request = (await findRequest(tx, next.request_id))!
    const block = await blockOf(tx, request, queue.location)
    if (block) {
      await closeBlocked(tx, request, block)
      continue
    }
    const placements = await placeRequest(tx, queue, hosts, next, request)
    if (!placements) {
      skipped.push(next.request_id)
      continue
    }
    await holdGpus(
      tx,
      request.id,
      'request',
      placements.flatMap(({ gpuIds }) => gpuIds),
    )
    await becomeHeld(tx, queue, request, [...new Set(placements.map(({ hostId }) => hostId))])
    await recordTurn(tx, { ...queueOf(queue), turn: next.turn })
  }
}

const queueOf = ({ location, family }: QueueRow) => ({ location, family })

/**
 * Takes GPUs for a request from the hosts; undefined if it does not fit. A group also gets GPUs of other hosts, which are added
 * to `hosts`. Only hosts that no other transaction has locked are locked here, because hosts must be locked before queues. If
 * these hosts are not enough, the service tries again in a transaction that waits for the locked ones.
 */
async function placeRequest(
  tx: Tx,
  queue: QueueRow,
  hosts: OpenHost[],
  entry: QueueEntry,
  request: RequestRow,
) {
  const wanted = {
    ...queueOf(queue),
    gpuCount: entry.gpus,
    allowedHosts: entry.host_id ? [entry.host_id] : null,
  }
  if (entry.vms === 1) {
    const placement = takeGpus(hosts, wanted, false)
    return placement && [placement]
  }
  const policy = request.body.instance_group?.placement_policy ?? 'unspecified'
  const except = hosts.map(({ id }) => id)
  hosts.push(...(await tryLockHostsForGroup(tx, { ...wanted, except, limit: entry.vms }, policy)))
  const copies = hosts.map((host) => ({ ...host }))
  const placements = placeGroup(copies, wanted, entry.vms, policy)
  if (placements.length < entry.vms) {
    await makeRequestDue(tx, request.id)
    tx.signal('capacity')
    return undefined
  }
  hosts.splice(0, hosts.length, ...copies)
  return placements
}

async function becomeHeld(tx: Tx, queue: QueueRow, request: RequestRow, hostIds: string[]): Promise<void> {
  const held = await setHeld(tx, { id: request.id, location: queue.location, hostIds })
  if (!held) throw new Error('a request with an open queue entry is not waiting')
  await touchQueuesOfRequest(tx, request.id)
  await setEntriesOpen(tx, request.id, false)
  await emitRequest(tx, 'capacity_request.held', held)
  tx.signal('capacity')
}

/** Closes the queue entries of a blocked request, so that it keeps its turn and delays no other request. */
export async function closeBlocked(tx: Tx, request: RequestRow, block: Block): Promise<void> {
  const { reason: blockedBy, until: retryAt, recheckS = usualRecheckS } = block
  await setEntriesOpen(tx, request.id, false)
  await blockRequest(tx, { id: request.id, blockedBy, retryAt, retryS: recheckS })
}

/**
 * Ends the holds on hosts that no longer accept VMs. Their requests wait again at their old positions. The transaction has
 * locked the hosts.
 */
export async function dropHolds(tx: Tx, hostIds: string[]): Promise<void> {
  if (hostIds.length === 0) return
  for (const { held_for, held_kind } of await dropHoldsOfClosedHosts(tx, hostIds))
    if (held_kind === 'request') await requeueAfterLoss(tx, held_for)
    else if (held_kind === 'reservation') await scheduleReservationCheck(tx, held_for)
}

/**
 * Called after host reports: held GPUs may have been lost, and GPUs may have become free. The transaction has
 * locked the hosts.
 */
export async function offerReportedGpus(tx: Tx, hostIds: string[]): Promise<void> {
  await dropHolds(tx, hostIds)
  for (const { id } of await listBrokenHolds(tx, hostIds)) await requeueAfterLoss(tx, id)
  await offerGpus(tx, hostIds)
}

/**
 * Puts a request that lost some of its held GPUs back into the queue, and offers its remaining GPUs to other
 * requests.
 */
async function requeueAfterLoss(tx: Tx, requestId: string): Promise<void> {
  const { held_hosts } = (await findRequest(tx, requestId))!
  await lockHosts(tx, held_hosts)
  await endHolds(tx, requestId, held_hosts)
  await requeue(tx, requestId)
  await offerGpus(tx, held_hosts)
}

/** Puts a request that no longer has a hold back into the queue. */
export async function requeue(tx: Tx, requestId: string): Promise<void> {
  await lockQueuesOfRequest(tx, requestId)
  await touchQueuesOfRequest(tx, requestId)
  const request = await setWaiting(tx, requestId)
  // A request that only accumulated GPUs is already waiting.
  if (!request) return
  await setEntriesOpen(tx, requestId, true)
  await emitRequest(tx, 'capacity_request.requeued', request)
  tx.signal('capacity')
}
