import { vmTypes } from '@slipway/contract'
import { type OpenHost, takeGpus } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import {
  dropHoldsOfClosedHosts,
  endHolds,
  holdGpus,
  listBrokenHolds,
  listHeldGpus,
  listOpenHosts,
} from '../../store/capacity/holds.ts'
import {
  findNextPlace,
  type LaneRow,
  lockLanesOfHosts,
  lockLanesOfRequest,
  noteTurn,
  setPlacesOpen,
  touchLanesOfRequest,
} from '../../store/capacity/lanes.ts'
import {
  blockRequest,
  findRequest,
  type RequestRow,
  setHeld,
  setWaiting,
} from '../../store/capacity/requests.ts'
import { makeReservationDue } from '../../store/capacity/reservations.ts'
import { type Block, blockOf } from './blocks.ts'
import { collectGpus } from './collect.ts'
import { emitRequest } from './events.ts'

/** A blocked request is checked again this often; a change of its quota is noticed at once. */
const usualRecheckS = 30

const sizesOf = new Map<string, number[]>()
for (const { family, gpuCount } of vmTypes)
  sizesOf.set(family, [...new Set([...(sizesOf.get(family) ?? []), gpuCount])])

/**
 * Offers the free GPUs of hosts to reservations, then to the requests that wait for such GPUs; the rest stays in stock. It is
 * called wherever GPUs become free, in the same transaction, so that no creation can overtake the queue. It only sets holds.
 * The transaction has locked the hosts.
 */
export async function offerGpus(tx: Tx, hostIds: string[]): Promise<void> {
  if (hostIds.length === 0) return
  const locked = await lockLanesOfHosts(tx, hostIds)
  const lanes = locked.filter(({ waiting, has_reservations }) => waiting > 0 || has_reservations)
  if (lanes.length === 0) return
  const open = await listOpenHosts(tx, hostIds)
  for (const lane of lanes) {
    const hosts = open.filter(({ location, family }) => location === lane.location && family === lane.family)
    if (lane.has_reservations) await collectGpus(tx, lane, hosts)
    if (lane.waiting === 0) continue
    await accumulate(tx, lane, hosts)
    await offerInTurn(tx, lane, hosts)
  }
}

/** Holds free GPUs of the target host for the request that accumulates them, which gets the hold when there are enough. */
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
  if (held + taken.length === request.gpus) await becomeHeld(tx, lane, request, target.id)
}

/** Gives GPUs to the first request that fits, until none fits. A request that does not fit lets smaller ones pass. */
async function offerInTurn(tx: Tx, lane: LaneRow, hosts: OpenHost[]): Promise<void> {
  const passed: string[] = []
  for (;;) {
    const most = Math.max(0, ...hosts.map(({ freeGpus }) => freeGpus))
    const sizes = (sizesOf.get(lane.family) ?? []).filter((size) => size <= most)
    const next = sizes.length > 0 ? await findNextPlace(tx, lane, { sizes, hosts, passed }) : undefined
    if (!next) return
    const request = (await findRequest(tx, next.request_id))!
    const block = await blockOf(tx, request, lane.location)
    if (block) {
      await closeBlocked(tx, request, block)
      continue
    }
    const wanted = {
      location: lane.location,
      family: lane.family,
      gpuCount: next.gpus,
      allowedHosts: next.host_id ? [next.host_id] : null,
    }
    const placement = takeGpus(hosts, wanted, false)
    if (!placement) {
      passed.push(next.request_id)
      continue
    }
    await holdGpus(tx, request.id, 'request', placement.gpuIds)
    await becomeHeld(tx, lane, request, placement.hostId)
    await noteTurn(tx, { ...laneOf(lane), turn: next.turn })
  }
}

const laneOf = ({ location, family }: LaneRow) => ({ location, family })

async function becomeHeld(tx: Tx, lane: LaneRow, request: RequestRow, hostId: string): Promise<void> {
  const held = await setHeld(tx, { id: request.id, location: lane.location, hostId })
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
    if (held_kind === 'request') await requeue(tx, held_for)
    else if (held_kind === 'reservation') await makeReservationDue(tx, held_for)
}

/** Called after reports of hosts: held GPUs may be lost, and GPUs may be free. The transaction has locked the hosts. */
export async function offerReportedGpus(tx: Tx, hostIds: string[]): Promise<void> {
  await dropHolds(tx, hostIds)
  for (const { id, host_id } of await listBrokenHolds(tx, hostIds)) {
    await endHolds(tx, id, host_id)
    await requeue(tx, id)
  }
  await offerGpus(tx, hostIds)
}

/** Puts a request that has lost its hold back into the queue. */
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
