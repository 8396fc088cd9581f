import type { FullOnes, WebhookTurn } from '../store/events/webhook-turns.ts'

/** Attempts that one process makes at a time, for all, and for each at most. */
const all = 64
const ofOrganization = 16
const ofProject = 4
/** A webhook whose receiver is slow, fails, or was never heard of. */
const ofSlowWebhook = 1
/** All slow ones together: the rest is for those who answer at once. */
const ofSlowOnes = 32

type Share = WebhookTurn & { count: number }

/** Who holds this process's slots, and who may have more: nobody's slow receivers keep another waiting. */
export class WebhookSlots {
  readonly #held: WebhookTurn[] = []

  hold(turn: WebhookTurn): void {
    this.#held.push(turn)
  }

  free(turn: WebhookTurn): void {
    this.#held.splice(this.#held.indexOf(turn), 1)
  }

  /** How many more webhooks of a kind can have a slot. */
  room(isSlow: boolean): number {
    const free = all - this.#held.length
    return isSlow ? Math.min(free, ofSlowOnes - count(this.#held, (turn) => turn.isSlow)) : free
  }

  get full(): FullOnes {
    const full: Record<keyof FullOnes, Set<string>> = {
      webhookIds: new Set(this.#held.filter(({ isSlow }) => isSlow).map(({ webhookId }) => webhookId)),
      projectIds: new Set(),
      organizationIds: new Set(),
    }
    for (const { projectId, organizationId } of this.#held) {
      if (count(this.#held, (turn) => turn.projectId === projectId) >= ofProject)
        full.projectIds.add(projectId)
      if (count(this.#held, (turn) => turn.organizationId === organizationId) >= ofOrganization)
        full.organizationIds.add(organizationId)
    }
    return {
      webhookIds: [...full.webhookIds],
      projectIds: [...full.projectIds],
      organizationIds: [...full.organizationIds],
    }
  }

  /** How many each of them gets, in their order; none that gets nothing. */
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

const count = (turns: WebhookTurn[], is: (turn: WebhookTurn) => boolean) => turns.filter(is).length
