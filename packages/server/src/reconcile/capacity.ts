import { Failure } from '../domain/failure.ts'
import { type Block, blockOf } from '../operations/capacity/blocks.ts'
import { admitHeld, passOn } from '../operations/capacity/grant.ts'
import { closeBlocked, offerGpus } from '../operations/capacity/offer.ts'
import { maintainQueue } from '../operations/capacity/queue.ts'
import { endAndOffer } from '../operations/capacity/requests.ts'
import { maintainReservation } from '../operations/capacity/reservations.ts'
import { CatalogueCache } from '../operations/catalogue.ts'
import { freeOperationHold } from '../operations/health/replace.ts'
import type { Services } from '../services.ts'
import { listFittingHosts, lockHosts } from '../store/capacity/holds.ts'
import { listEndedHolders } from '../store/capacity/operation-holds.ts'
import { setEntriesOpen } from '../store/capacity/queue-entries.ts'
import { listDueQueues, lockQueuesOfRequest, type Queue, refuseHolds } from '../store/capacity/queues.ts'
import {
  findBlockConditions,
  findRequest,
  leaveInQueue,
  listDueRequests,
  type RequestRow,
} from '../store/capacity/requests.ts'
import { listDueReservations } from '../store/capacity/reservations.ts'

/** After an unclaimed hold, an organization gets no hold in that queue for this many seconds. */
const noHoldS = 3_600
/** Blocks a request for a while if something other than GPUs is missing, such as public addresses. */
const otherShortage: Block = { reason: '', until: null, recheckS: 600 }
const maxRounds = 20
/**
 * In a large fleet, estimates take a long time. After a slow check, the pause until the queue is checked again is
 * four times as long as the check.
 */
const slowCheck = { ms: 100, pauseFactor: 4 }

/** Processes the queues: grants held requests, offers stock to new requests, and ends expired ones. */
export class CapacityQueue {
  readonly #services: Services
  readonly #catalogue = new CatalogueCache()
  /** When each queue may be checked again, by the clock of this process. */
  readonly #pausedUntil = new Map<string, number>()

  constructor(services: Services) {
    this.#services = services
  }

  /** Processes everything that is due. Work that becomes due as a result is done in the next round. */
  async serve(): Promise<void> {
    const { database, log } = this.#services
    for (let round = 0; round < maxRounds; round++) {
      const requests = await listDueRequests(database)
      const queues = (await listDueQueues(database)).filter((queue) => !this.#isPaused(queue))
      const reservations = await listDueReservations(database)
      const ended = await listEndedHolders(database)
      if (requests.length + queues.length + reservations.length + ended.length === 0) return
      for (const { id } of ended) await database.transaction((tx) => freeOperationHold(tx, id))
      for (const { id } of reservations)
        await maintainReservation(database, id).catch((err) =>
          log.warn({ err, reservation: id }, 'reservation not processed'),
        )
      for (const { id } of requests)
        await this.#process(id).catch((err) =>
          log.warn({ err, request: id }, 'capacity request not processed'),
        )
      for (const queue of queues)
        await this.#maintain(queue).catch((err) => log.warn({ err, queue }, 'capacity queue not processed'))
    }
  }

  #isPaused({ location, family }: Queue): boolean {
    return performance.now() < (this.#pausedUntil.get(`${location} ${family}`) ?? 0)
  }

  async #maintain(queue: Queue): Promise<void> {
    const { database, config } = this.#services
    const { accumulateAfterS, accumulateMaxS } = config.capacity
    const startedMs = performance.now()
    await maintainQueue(database, queue, { afterMs: accumulateAfterS * 1000, maxMs: accumulateMaxS * 1000 })
    const tookMs = performance.now() - startedMs
    if (tookMs > slowCheck.ms)
      this.#pausedUntil.set(
        `${queue.location} ${queue.family}`,
        performance.now() + tookMs * slowCheck.pauseFactor,
      )
  }

  async #process(id: string): Promise<void> {
    const { database } = this.#services
    const request = await findRequest(database, id)
    const conditions = request && (await findBlockConditions(database, { id, location: request.location }))
    if (!request?.due_at || !conditions) return
    if (request.state === 'held') {
      // A request that already has an operation is for a group that did not boot. Its hold expired while the
      // group was being removed, so other requests get the GPUs.
      if (request.on_available === 'create')
        return request.operation_id === null ? this.#grant(request) : this.#passOn(request, otherShortage)
      if (conditions.has_hold_expired) return this.#lapse(request)
      return
    }
    if (conditions.is_over) return this.#expire(request)
    if (await this.#open(request)) await this.#offer(request)
  }

  /**
   * Opens the request's queue entries, unless something blocks the request. Returns whether the request is
   * still waiting and not blocked. Its state is read after its queues are locked, because another transaction
   * could hold GPUs for it until then.
   */
  #open(request: RequestRow): Promise<boolean> {
    return this.#services.database.transaction(async (tx) => {
      const [queue] = await lockQueuesOfRequest(tx, request.id)
      if ((await findRequest(tx, request.id))?.state !== 'waiting') return false
      const block = queue && (await blockOf(tx, request, queue.location))
      if (block) await closeBlocked(tx, request, block)
      else await setEntriesOpen(tx, request.id, true)
      return !block
    })
  }

  /**
   * Offers the queue of the request the free GPUs that fit it. The first request in the queue gets them, which may be
   * another request. This request then waits until GPUs become free.
   */
  #offer(request: RequestRow): Promise<void> {
    return this.#services.database.transaction(async (tx) => {
      const hostIds = (await listFittingHosts(tx, request.id)).map(({ id }) => id)
      await lockHosts(tx, hostIds)
      await offerGpus(tx, hostIds)
      await leaveInQueue(tx, request.id)
    })
  }

  async #grant(request: RequestRow): Promise<void> {
    const { database } = this.#services
    const { id, project_id: projectId, organization_id: organizationId, actor, request_id } = request
    const block = await database.transaction((tx) => blockOf(tx, request, request.location))
    if (block) return this.#passOn(request, block)
    const by = { actor, requestId: request_id, clientAddress: '', projectId, organizationId }
    try {
      await database.transaction(async (tx) => {
        const now = await findRequest(tx, id)
        if (now?.state === 'held') await admitHeld(tx, this.#catalogue, by, now)
      })
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      await this.#fail(request, error)
    }
  }

  /**
   * Quota, budget and addresses may become available again, so the request waits for them. Any other error
   * ends the request.
   */
  async #fail(request: RequestRow, { code, message }: Failure): Promise<void> {
    if (code === 'quota_exceeded') return this.#passOn(request, { reason: 'quota', until: null })
    if (code === 'out_of_stock') return this.#passOn(request, otherShortage)
    await this.#services.database.transaction((tx) =>
      endAndOffer(tx, request, 'failed', undefined, { code, message }),
    )
  }

  #passOn(request: RequestRow, block: Block): Promise<void> {
    return this.#services.database.transaction(async (tx) => {
      const now = await findRequest(tx, request.id)
      if (now?.state === 'held') await passOn(tx, now, block)
    })
  }

  /** Ends a hold that was not claimed in time. */
  async #lapse(request: RequestRow): Promise<void> {
    const { organization_id: organizationId, location, family } = request
    await this.#services.database.transaction(async (tx) => {
      const now = await findRequest(tx, request.id)
      if (now?.state !== 'held' || !(await endAndOffer(tx, now, 'expired'))) return
      await refuseHolds(tx, { organizationId, location, family, seconds: noHoldS })
    })
  }

  async #expire(request: RequestRow): Promise<void> {
    await this.#services.database.transaction(async (tx) => {
      const now = await findRequest(tx, request.id)
      if (now?.state === 'waiting') await endAndOffer(tx, now, 'expired')
    })
  }
}
