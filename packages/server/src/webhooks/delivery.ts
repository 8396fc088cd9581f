import { setTimeout as delay } from 'node:timers/promises'
import { pauseAfterFailingS } from '@slipway/contract/event-types'
import { addressGuard } from '../domain/public-address.ts'
import { openSecret } from '../domain/secret-key.ts'
import { webhookHeaders } from '../domain/webhook-signature.ts'
import { CoalescedTask } from '../runner/coalesced.ts'
import { PeriodicTasks } from '../runner/periodic.ts'
import type { Services } from '../services.ts'
import {
  type AttemptOutcome,
  type ClaimedDelivery,
  claimDeliveries,
  claimDueWebhooks,
  type DeliveryRow,
  type DueWebhook,
  endAttempt,
  lockWebhooks,
} from '../store/events/due-webhooks.ts'
import { emit } from '../store/events/events.ts'
import { fanOutEvents, firstWantedPosition } from '../store/events/webhook-deliveries.ts'
import { listWebhookSecrets, pauseFailingWebhook } from '../store/events/webhooks.ts'
import { webhookPayload, webhookView } from '../views/events.ts'
import { type Outcome, WebhookSender } from './sender.ts'
import { WebhookSlots } from './slots.ts'

/** Pauses between attempts; the last attempt is a day after the first. */
export const retryPausesS = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 29_845]
const attemptMs = 10_000
/** Longer than an attempt, so that another worker takes over only interrupted attempts. */
const leaseMs = 30_000
/** A receiver that takes longer counts as slow. */
const quickMs = 1_000
/** The pause for a receiver that failed. It doubles with each failure, up to `longest`. */
const restS = { first: 5, longest: 300 }
/** An error response may concern only one event. After this many in a row, the receiver is considered to be failing. */
const errorsBeforeRest = 3

/**
 * Delivers events to webhooks at least once, in order for each resource, with retries for a day. Any number of processes can
 * share the work.
 */
export class WebhookDelivery {
  readonly #services: Services
  readonly #sender: WebhookSender
  readonly #tasks: PeriodicTasks
  readonly #working = new CoalescedTask(() => this.#work())
  readonly #warn = (err: unknown) => this.#services.log.warn({ err }, 'webhook deliveries failed; will retry')
  readonly #slots = new WebhookSlots()
  readonly #attempts = new Set<Promise<void>>()

  constructor(services: Services) {
    this.#services = services
    this.#tasks = new PeriodicTasks(this.#warn)
    this.#sender = new WebhookSender(addressGuard(services.config.webhooks.allowPrivateRanges))
  }

  start(): void {
    const unsubscribe = this.#services.signals.on('stamped', () => this.#wake())
    this.#tasks.stopping.addEventListener('abort', unsubscribe)
    this.#tasks.runOn(
      (call) => this.#services.due.on({ kind: 'webhooks' }, call),
      () => this.#working.run(),
    )
  }

  async stop(): Promise<void> {
    const stopped = this.#tasks.stop()
    await Promise.race([Promise.all([stopped, ...this.#attempts]), delay(3_000, undefined, { ref: false })])
  }

  /** Makes all due deliveries and waits for their outcome. For tests. */
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
      // Each batch is a transaction.
    }
    for (const isSlow of [false, true])
      while (await this.#claim(isSlow)) {
        // Until no slot is free or no webhook is due.
      }
  }

  /** Starts due deliveries of the next webhooks; returns whether there were any. */
  async #claim(isSlow: boolean): Promise<boolean> {
    const room = this.#slots.room(isSlow)
    if (room <= 0) return false
    const claims = await this.#services.database.transaction(async (tx) => {
      const dueWebhooks = await claimDueWebhooks(tx, isSlow, this.#slots.atLimit, room)
      if (dueWebhooks.length === 0) return []
      const shares = this.#slots.share(dueWebhooks, isSlow)
      const claimed = await claimDeliveries(tx, shares, leaseMs)
      return claimed.map((claim) => ({
        claim,
        due: dueWebhooks.find(({ webhookId }) => webhookId === claim.delivery.webhook_id)!,
      }))
    })
    for (const { claim, due } of claims) this.#begin(claim, { ...due })
    return claims.length > 0
  }

  #begin(claimed: ClaimedDelivery, due: DueWebhook): void {
    this.#slots.hold(due)
    const attempt = this.#attempt(claimed)
      .catch((error) =>
        this.#services.log.warn(
          { err: error, delivery: claimed.delivery.id },
          'webhook delivery interrupted; will retry',
        ),
      )
      .finally(() => {
        this.#slots.free(due)
        this.#attempts.delete(attempt)
        this.#wake()
      })
    this.#attempts.add(attempt)
  }

  async #attempt({ delivery, url, event, claimedAt }: ClaimedDelivery): Promise<void> {
    const { database, secretKey } = this.#services
    const sealed = await listWebhookSecrets(database, delivery.webhook_id)
    const secrets = sealed.map((each) => openSecret(secretKey, each))
    const body = webhookPayload(event)
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'slipway-webhooks',
      ...webhookHeaders(secrets, { id: event.id, sentAt: claimedAt, body }),
    }
    const startedAtMs = performance.now()
    const outcome = await this.#sender.post(url, headers, body, attemptMs)
    await this.#recordOutcome(delivery, outcome, performance.now() - startedAtMs > quickMs)
  }

  async #recordOutcome(delivery: DeliveryRow, outcome: Outcome, isSlow: boolean): Promise<void> {
    await this.#services.database.transaction(async (tx) => {
      const [webhook] = await lockWebhooks(tx, [delivery.webhook_id])
      if (!webhook) return
      const state = await endAttempt(tx, delivery, {
        ...outcome,
        ...nextState(delivery, outcome),
        isSlow,
        restS: restAfter(webhook.failures, outcome),
      })
      if (state !== 'failed' && state !== 'pending') return
      // After days without a success, the webhook is paused and its project gets an event.
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

function nextState({ attempts }: DeliveryRow, { error }: Outcome): Pick<AttemptOutcome, 'state' | 'pauseS'> {
  if (error === '') return { state: 'delivered', pauseS: null }
  const pauseS = retryPausesS[attempts - 1] ?? null
  return { state: pauseS === null ? 'failed' : 'pending', pauseS }
}

/** Returns the seconds until the next attempt to reach a receiver with this many failures. */
export function restAfter(failures: number, { status, error }: Outcome): number {
  if (error === '') return 0
  const times = status === 0 ? failures : failures - errorsBeforeRest + 1
  return times < 0 ? 0 : Math.min(restS.longest, restS.first * 2 ** times)
}
