/**
 * This much time's worth of bytes may pass at once. On a busy machine a process wakes up tens of milliseconds late; with a
 * smaller burst the time until then would be lost, and a guest would reach only a part of its limit.
 */
const burstMs = 50

/** Limits one direction of a VM's network cards. Bytes that passed too early are waited for afterwards. */
export class RateLimit {
  readonly #bytesPerMs: number
  /** When everything that has passed would have passed at the limit. */
  #paidAtMs = 0

  /** Without a number there is no limit. */
  constructor(gbps = Number.POSITIVE_INFINITY) {
    this.#bytesPerMs = (gbps * 1e9) / 8 / 1000
  }

  take(bytes: number): void {
    this.#paidAtMs = Math.max(this.#paidAtMs, performance.now()) + bytes / this.#bytesPerMs
  }

  /** How long the next bytes have to wait; 0 if they may pass now. */
  get waitMs(): number {
    return Math.max(0, this.#paidAtMs - performance.now() - burstMs)
  }
}

/** The limits of a VM, seen from the forwarder: both cards share them. */
export interface CardLimits {
  received: RateLimit
  sent: RateLimit
}

export const cardLimits = (gbps: number | undefined): CardLimits => ({
  received: new RateLimit(gbps),
  sent: new RateLimit(gbps),
})
