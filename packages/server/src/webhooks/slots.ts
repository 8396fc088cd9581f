import { groupBy } from '../domain/lists.ts'
import type { AtLimit, DueWebhook } from '../store/events/due-webhooks.ts'

/** Limits on concurrent attempts in one process: in total, per organization and per project. */
const maxTotal = 64
const maxPerOrganization = 16
const maxPerProject = 4
/** Limit for a webhook with a receiver that is slow, fails, or has not responded yet. */
const maxPerSlowWebhook = 1
/** Limit for all slow webhooks together; the other slots are for receivers that respond quickly. */
const maxSlow = 32

type Share = DueWebhook & { count: number }

/** Divides this process's slots among webhooks, so that slow receivers of one tenant do not delay other tenants. */
export class WebhookSlots {
  readonly #held: DueWebhook[] = []

  hold(due: DueWebhook): void {
    this.#held.push(due)
  }

  free(due: DueWebhook): void {
    this.#held.splice(this.#held.indexOf(due), 1)
  }

  /** Returns the number of free slots for slow or for quick webhooks. */
  room(isSlow: boolean): number {
    const free = maxTotal - this.#held.length
    return isSlow ? Math.min(free, maxSlow - count(this.#held, (due) => due.isSlow)) : free
  }

  get atLimit(): AtLimit {
    const slow = this.#held.filter(({ isSlow }) => isSlow)
    return {
      webhookIds: idsAtLimit(slow, ({ webhookId }) => webhookId, maxPerSlowWebhook),
      projectIds: idsAtLimit(this.#held, ({ projectId }) => projectId, maxPerProject),
      organizationIds: idsAtLimit(this.#held, ({ organizationId }) => organizationId, maxPerOrganization),
    }
  }

  /** Gives slots to the webhooks in their order, and omits those that get none. */
  share(dueWebhooks: DueWebhook[], isSlow: boolean): Share[] {
    const shares: Share[] = []
    let room = this.room(isSlow)
    const left = (max: number, isSame: (due: DueWebhook) => boolean) =>
      max -
      count(this.#held, isSame) -
      shares.filter(isSame).reduce((sum, { count: given }) => sum + given, 0)
    for (const due of dueWebhooks) {
      const share = Math.min(
        room,
        left(maxPerOrganization, ({ organizationId }) => organizationId === due.organizationId),
        left(maxPerProject, ({ projectId }) => projectId === due.projectId),
        ...(isSlow ? [left(maxPerSlowWebhook, ({ webhookId }) => webhookId === due.webhookId)] : []),
      )
      if (share <= 0) continue
      room -= share
      shares.push({ ...due, count: share })
    }
    return shares
  }
}

const idsAtLimit = (dueWebhooks: DueWebhook[], idOf: (due: DueWebhook) => string, limit: number): string[] =>
  [...groupBy(dueWebhooks, idOf)].filter(([, held]) => held.length >= limit).map(([id]) => id)

const count = (dueWebhooks: DueWebhook[], is: (due: DueWebhook) => boolean) => dueWebhooks.filter(is).length
