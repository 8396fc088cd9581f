import { setTimeout as delay } from 'node:timers/promises'
import { addressGuard } from '../domain/public-address.ts'
import { webhookHeaders } from '../domain/webhook-signature.ts'
import { CoalescedTask } from '../runner/coalesced.ts'
import { PeriodicTasks } from '../runner/periodic.ts'
import type { Services } from '../services.ts'
import { emit } from '../store/events/events.ts'
import {
  type ClaimedDelivery,
  claimDeliveries,
  fanOutEvents,
  firstWantedPosition,
  markAttemptFailed,
  markDelivered,
} from '../store/events/webhook-deliveries.ts'
import { listWebhookSecrets, pauseFailingWebhook } from '../store/events/webhooks.ts'
import { eventView, webhookView } from '../views/events.ts'
import { WebhookSender } from './sender.ts'

/** Between one attempt and the next; the last comes a day after the first. */
export const retryPausesS = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 29_845]
const attemptMs = 10_000
/** Longer than an attempt, so that another worker takes over only what was dropped. */
const leaseMs = 30_000
const pauseAfterFailingS = 3 * 86_400
const concurrency = 16
/** So that a slow receiver keeps nobody else waiting. */
const concurrencyOfOne = 4
const tickMs = 1_000

/**
 * Brings events to webhooks: at least once, in order for each resource, for a day. Any number of processes may do so
 * at once.
 */
export class WebhookDelivery {
  readonly #services: Services
  readonly #sender: WebhookSender
  readonly #tasks: PeriodicTasks
  readonly #working = new CoalescedTask(() => this.#work())
  readonly #warn = (err: unknown) => this.#services.log.warn({ err }, 'webhooks not served')
  /** Webhook ids of what is on its way, once for each attempt. */
  readonly #busy: string[] = []
  readonly #attempts = new Set<Promise<void>>()

  constructor(services: Services) {
    this.#services = services
    this.#tasks = new PeriodicTasks(this.#warn)
    this.#sender = new WebhookSender(addressGuard(services.config.webhooks.allowPrivateRanges))
  }

  start(): void {
    const unsubscribe = this.#services.signals.on('stamped', () => this.#wake())
    this.#tasks.stopping.addEventListener('abort', unsubscribe)
    this.#tasks.every(tickMs, () => this.#working.run())
  }

  async stop(): Promise<void> {
    const stopped = this.#tasks.stop()
    await Promise.race([Promise.all([stopped, ...this.#attempts]), delay(3_000, undefined, { ref: false })])
  }

  /** All that is due, and its outcome: for tests and for whoever cannot wait. */
  async once(): Promise<void> {
    for (;;) {
      await this.#wake()
      if (this.#attempts.size === 0) return
      await Promise.all(this.#attempts)
    }
  }

  #wake(): Promise<void> {
    return this.#working.run().catch(this.#warn)
  }

  async #work(): Promise<undefined> {
    if (this.#tasks.stopping.aborted) return
    const { database } = this.#services
    const since = await firstWantedPosition(database)
    if (since === null) return
    while (await fanOutEvents(database, since)) {
      // Batch after batch, each in a transaction of its own.
    }
    const free = concurrency - this.#busy.length
    if (free <= 0) return
    const claimed = await claimDeliveries(database, {
      busyWebhookIds: this.#busy.filter((id) => count(this.#busy, id) >= concurrencyOfOne),
      eachWebhook: concurrencyOfOne,
      most: free,
      leaseMs,
    })
    for (const each of claimed) this.#begin(each)
  }

  #begin(claimed: ClaimedDelivery): void {
    const { webhook_id } = claimed.delivery
    this.#busy.push(webhook_id)
    const attempt = this.#attempt(claimed)
      .catch((error) =>
        this.#services.log.warn({ err: error, delivery: claimed.delivery.id }, 'delivery interrupted'),
      )
      .finally(() => {
        this.#busy.splice(this.#busy.indexOf(webhook_id), 1)
        this.#attempts.delete(attempt)
        this.#wake()
      })
    this.#attempts.add(attempt)
  }

  async #attempt({ delivery, url, event, claimedAt }: ClaimedDelivery): Promise<void> {
    const { database } = this.#services
    const secrets = await listWebhookSecrets(database, delivery.webhook_id)
    const record = eventView(event, false)
    const body = JSON.stringify({ type: record.type, timestamp: record.created_at, data: record })
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'slipway-webhooks',
      ...webhookHeaders(secrets, { id: event.id, sentAt: claimedAt, body }),
    }
    const outcome = await this.#sender.post(url, headers, body, attemptMs)
    if (outcome.error === '')
      return void (await markDelivered(database, delivery.id, delivery.attempts, outcome.status))
    await this.#failed(delivery, outcome)
  }

  async #failed(
    delivery: ClaimedDelivery['delivery'],
    outcome: { status: number; error: string },
  ): Promise<void> {
    const { database } = this.#services
    await database.transaction(async (tx) => {
      const pauseS = retryPausesS[delivery.attempts - 1] ?? null
      const after = await markAttemptFailed(tx, delivery.id, delivery.attempts, { ...outcome, pauseS })
      if (after?.state !== 'failed') return
      // Nobody has been there for days: trying on helps nobody, telling does.
      const paused = await pauseFailingWebhook(tx, delivery.webhook_id, pauseAfterFailingS)
      if (!paused) return
      await emit(tx, {
        type: 'webhook.paused',
        resourceType: 'webhook',
        resourceId: paused.id,
        projectId: paused.project_id,
        data: { ...webhookView(paused), reason: 'No delivery has succeeded for three days.' },
      })
    })
  }
}

const count = (ids: string[], id: string) => ids.filter((each) => each === id).length
