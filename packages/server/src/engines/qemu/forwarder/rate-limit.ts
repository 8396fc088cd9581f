/**
 * The length of a burst: this many milliseconds' worth of bytes may pass without waiting. On a busy machine,
 * a process wakes up tens of milliseconds late. With a smaller burst, the lost time could not be made up,
 * and a guest could not reach its limit.
 */
const burstMs = 50

/** Limits one direction of a VM's network interfaces. A burst may pass early; later bytes then wait longer. */
export class RateLimit {
  readonly #bytesPerMs: number
  /** The time at which all bytes so far would have passed at exactly the limit. */
  #paidAtMs = 0

  /** There is no limit if `gbps` is omitted. */
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

/**
 * The limits of a VM, which its two network interfaces share. `received` and `sent` are from the forwarder's
 * point of view.
 */
export interface NetworkLimits {
  received: RateLimit
  sent: RateLimit
}

export const networkLimits = (gbps: number | undefined): NetworkLimits => ({
  received: new RateLimit(gbps),
  sent: new RateLimit(gbps),
})
