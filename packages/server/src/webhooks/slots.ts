import { groupBy } from '../domain/lists.ts'
import type { AtLimit, DueWebhook } from '../store/events/due-webhooks.ts'

/** Limits of concurrent attempts in one process: in total, per organization and per project. */
const all = 64
const ofOrganization = 16
const ofProject = 4
/** Limit of a webhook with a receiver that is slow, fails, or has not responded yet. */
const ofSlowWebhook = 1
/** Limit of all slow webhooks together; the other slots are for receivers that respond quickly. */
const ofSlowOnes = 32

type Share = DueWebhook & { count: number }

/** Divides this process's slots, so that slow receivers of one tenant do not delay another. */
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
    const free = all - this.#held.length
    return isSlow ? Math.min(free, ofSlowOnes - count(this.#held, (due) => due.isSlow)) : free
  }

  get full(): AtLimit {
    const slow = this.#held.filter(({ isSlow }) => isSlow)
    return {
      webhookIds: idsAtLimit(slow, ({ webhookId }) => webhookId, ofSlowWebhook),
      projectIds: idsAtLimit(this.#held, ({ projectId }) => projectId, ofProject),
      organizationIds: idsAtLimit(this.#held, ({ organizationId }) => organizationId, ofOrganization),
    }
  }

  /** Gives slots to the webhooks in their order, and omits those that get none. */
  share(dueWebhooks: DueWebhook[], isSlow: boolean): Share[] {
    const shares: Share[] = []
    let room = this.room(isSlow)
    const left = (most: number, isSame: (due: DueWebhook) => boolean) =>
      most -
      count(this.#held, isSame) -
      shares.filter(isSame).reduce((sum, { count: given }) => sum + given, 0)
    for (const due of dueWebhooks) {
      const share = Math.min(
        room,
        left(ofOrganization, ({ organizationId }) => organizationId === due.organizationId),
        left(ofProject, ({ projectId }) => projectId === due.projectId),
        ...(isSlow ? [left(ofSlowWebhook, ({ webhookId }) => webhookId === due.webhookId)] : []),
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
