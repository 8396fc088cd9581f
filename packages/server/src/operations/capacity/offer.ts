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
import {
  type LaneRow,
  listLanesOfHosts,
  lockLanes,
  lockLanesOfHosts,
  lockLanesOfRequest,
  noteTurn,
  touchLanesOfRequest,
} from '../../store/capacity/lanes.ts'
import { findNextPlaces, type PlaceRow, setPlacesOpen } from '../../store/capacity/places.ts'
import {
  blockRequest,
  findRequest,
  makeRequestDue,
  type RequestRow,
  setHeld,
  setWaiting,
} from '../../store/capacity/requests.ts'
import { scheduleReservationCheck } from '../../store/capacity/reservations.ts'
import { lockIdleHostsForGang } from '../../store/compute/group-hosts.ts'
import { type Block, blockOf } from './blocks.ts'
import { collectGpus } from './collect.ts'
import { emitRequest } from './events.ts'

/** A blocked request is checked again this often; a change of its quota is noticed at once. */
const usualRecheckS = 30

/**
 * Offers the free GPUs of hosts to reservations, then to the requests that wait for such GPUs; the rest stays in stock. It is
 * called wherever GPUs become free, in the same transaction, so that no creation can overtake the queue. It only sets holds.
 * The transaction has locked the hosts.
 */
export async function offerGpus(tx: Tx, hostIds: string[]): Promise<void> {
  if (hostIds.length === 0) return
  // One round trip. The hosts and the queues are read when the queues are locked.
  const [lanes, locked, open, places] = await Promise.all([
    listLanesOfHosts(tx, hostIds),
    lockLanesOfHosts(tx, hostIds),
    listOpenHosts(tx, hostIds),
    findNextPlaces(tx, hostIds, []),
  ])
  if (locked.length < lanes.length) {
    await lockLanes(tx, lanes)
    return offerGpus(tx, hostIds)
  }
  for (const lane of locked) {
    const isHere = ({ location, family }: { location: string; family: string }) =>
      location === lane.location && family === lane.family
    const hosts = open.filter(isHere)
    if (lane.has_reservations) await collectGpus(tx, lane, hosts)
    if (lane.waiting === 0) continue
    await accumulate(tx, lane, hosts)
    const isUnchanged = !lane.has_reservations && lane.target_host === null
    await offerInTurn(tx, lane, hosts, isUnchanged ? places.find(isHere) : await nextOf(tx, hosts, []))
  }
}

const nextOf = async (tx: Tx, hosts: OpenHost[], passed: string[]): Promise<PlaceRow | undefined> =>
  (
    await findNextPlaces(
      tx,
      hosts.map(({ id }) => id),
      passed,
    )
  )[0]

/** Holds free GPUs of the target host for the request that accumulates them, which gets the hold when they suffice. */
async function accumulate(tx: Tx, lane: LaneRow, hosts: OpenHost[]): Promise<void> {
  const target = hosts.find(({ id }) => id === lane.target_host)
  if (!target) return
  const request = (await findRequest(tx, lane.accumulator!))!
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
  if (held + taken.length === request.gpus) await becomeHeld(tx, lane, request, [target.id])
}

/** Gives GPUs to the first request that fits, again and again. A request that does not fit lets smaller ones pass. */
async function offerInTurn(
  tx: Tx,
  lane: LaneRow,
  hosts: OpenHost[],
  start: PlaceRow | undefined,
): Promise<void> {
  const passed: string[] = []
  for (let next = start; next; next = await nextOf(tx, hosts, passed)) {
    const request = (await findRequest(tx, next.request_id))!
    const block = await blockOf(tx, request, lane.location)
    if (block) {
      await closeBlocked(tx, request, block)
      continue
    }
    const placements = await placeAt(tx, lane, hosts, next, request)
    if (!placements) {
      passed.push(next.request_id)
      continue
    }
    await holdGpus(
      tx,
      request.id,
      'request',
      placements.flatMap(({ gpuIds }) => gpuIds),
    )
    await becomeHeld(tx, lane, request, [...new Set(placements.map(({ hostId }) => hostId))])
    await noteTurn(tx, { ...laneOf(lane), turn: next.turn })
  }
}

const laneOf = ({ location, family }: LaneRow) => ({ location, family })

/**
 * Takes GPUs for a request from the hosts; undefined if it does not fit. A group also gets GPUs of other hosts, which are added
 * to `hosts`. Only hosts that no other transaction holds are locked, since hosts are locked before queues. If the group would
 * fit with the others, the service tries again in a transaction that waits for them.
 */
async function placeAt(tx: Tx, lane: LaneRow, hosts: OpenHost[], place: PlaceRow, request: RequestRow) {
  const wanted = {
    ...laneOf(lane),
    gpuCount: place.gpus,
    allowedHosts: place.host_id ? [place.host_id] : null,
  }
  if (place.vms === 1) {
    const placement = takeGpus(hosts, wanted, false)
    return placement && [placement]
  }
  const policy = request.body.instance_group?.placement_policy ?? 'unspecified'
  const except = hosts.map(({ id }) => id)
  hosts.push(...(await lockIdleHostsForGang(tx, { ...wanted, except, most: place.vms }, policy)))
  const copies = hosts.map((host) => ({ ...host }))
  const placements = placeGroup(copies, wanted, place.vms, policy)
  if (placements.length < place.vms) {
    await makeRequestDue(tx, request.id)
    tx.signal('capacity')
    return undefined
  }
  hosts.splice(0, hosts.length, ...copies)
  return placements
}

async function becomeHeld(tx: Tx, lane: LaneRow, request: RequestRow, hostIds: string[]): Promise<void> {
  const held = await setHeld(tx, { id: request.id, location: lane.location, hostIds })
  if (!held) throw new Error('a request with an open place does not wait')
  await touchLanesOfRequest(tx, request.id)
  await setPlacesOpen(tx, request.id, false)
  await emitRequest(tx, 'capacity_request.held', held)
  tx.signal('capacity')
}

/** A blocked request keeps its turn, and blocks no other request. */
export async function closeBlocked(tx: Tx, request: RequestRow, block: Block): Promise<void> {
  const { reason: blockedBy, until: retryAt, recheckS = usualRecheckS } = block
  await setPlacesOpen(tx, request.id, false)
  await blockRequest(tx, { id: request.id, blockedBy, retryAt, retryS: recheckS })
}

/**
 * Ends the holds on hosts that no longer accept VMs. Their requests wait again at their old positions. The transaction has
 * locked the hosts.
 */
export async function dropHolds(tx: Tx, hostIds: string[]): Promise<void> {
  if (hostIds.length === 0) return
  for (const { held_for, held_kind } of await dropHoldsOfClosedHosts(tx, hostIds))
    if (held_kind === 'request') await loseHold(tx, held_for)
    else if (held_kind === 'reservation') await scheduleReservationCheck(tx, held_for)
}

/** Called after reports of hosts: held GPUs may be lost, and GPUs may be free. The transaction has locked the hosts. */
export async function offerReportedGpus(tx: Tx, hostIds: string[]): Promise<void> {
  await dropHolds(tx, hostIds)
  for (const { id } of await listBrokenHolds(tx, hostIds)) await loseHold(tx, id)
  await offerGpus(tx, hostIds)
}

/** The request has lost GPUs that were held for it. It waits again, and the rest of them is offered to others. */
async function loseHold(tx: Tx, requestId: string): Promise<void> {
  const { held_hosts } = (await findRequest(tx, requestId))!
  await lockHosts(tx, held_hosts)
  await endHolds(tx, requestId, held_hosts)
  await requeue(tx, requestId)
  await offerGpus(tx, held_hosts)
}

/** The request has no hold any more. */
export async function requeue(tx: Tx, requestId: string): Promise<void> {
  await lockLanesOfRequest(tx, requestId)
  await touchLanesOfRequest(tx, requestId)
  const request = await setWaiting(tx, requestId)
  // A request that only accumulated GPUs is already waiting.
  if (!request) return
  await setPlacesOpen(tx, requestId, true)
  await emitRequest(tx, 'capacity_request.requeued', request)
  tx.signal('capacity')
}
