import { groupBy } from '../domain/lists.ts'
import type { FullOnes, WebhookTurn } from '../store/events/webhook-turns.ts'

/** Limits of concurrent attempts in one process: in total, per organization and per project. */
const all = 64
const ofOrganization = 16
const ofProject = 4
/** Limit of a webhook whose receiver is slow, fails, or has not responded yet. */
const ofSlowWebhook = 1
/** Limit of all slow webhooks together; the other slots are for receivers that respond quickly. */
const ofSlowOnes = 32

type Share = WebhookTurn & { count: number }

/** Divides this process's slots, so that slow receivers of one tenant do not delay another. */
export class WebhookSlots {
  readonly #held: WebhookTurn[] = []

  hold(turn: WebhookTurn): void {
    this.#held.push(turn)
  }

  free(turn: WebhookTurn): void {
    this.#held.splice(this.#held.indexOf(turn), 1)
  }

  /** Returns the number of free slots for slow or for quick webhooks. */
  room(isSlow: boolean): number {
    const free = all - this.#held.length
    return isSlow ? Math.min(free, ofSlowOnes - count(this.#held, (turn) => turn.isSlow)) : free
  }

  get full(): FullOnes {
    const slow = this.#held.filter(({ isSlow }) => isSlow)
    return {
      webhookIds: idsAtLimit(slow, ({ webhookId }) => webhookId, ofSlowWebhook),
      projectIds: idsAtLimit(this.#held, ({ projectId }) => projectId, ofProject),
      organizationIds: idsAtLimit(this.#held, ({ organizationId }) => organizationId, ofOrganization),
    }
  }

  /** Gives slots to the webhooks in their order, and leaves out those that get none. */
  share(turns: WebhookTurn[], isSlow: boolean): Share[] {
    const shares: Share[] = []
    let room = this.room(isSlow)
    const left = (most: number, isSame: (turn: WebhookTurn) => boolean) =>
      most -
      count(this.#held, isSame) -
      shares.filter(isSame).reduce((sum, { count: given }) => sum + given, 0)
    for (const turn of turns) {
      const share = Math.min(
        room,
        left(ofOrganization, ({ organizationId }) => organizationId === turn.organizationId),
        left(ofProject, ({ projectId }) => projectId === turn.projectId),
        ...(isSlow ? [left(ofSlowWebhook, ({ webhookId }) => webhookId === turn.webhookId)] : []),
      )
      if (share <= 0) continue
      room -= share
      shares.push({ ...turn, count: share })
    }
    return shares
  }
}

const idsAtLimit = (turns: WebhookTurn[], idOf: (turn: WebhookTurn) => string, limit: number): string[] =>
  [...groupBy(turns, idOf)].filter(([, held]) => held.length >= limit).map(([id]) => id)

const count = (turns: WebhookTurn[], is: (turn: WebhookTurn) => boolean) => turns.filter(is).length
