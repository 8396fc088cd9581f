import type { FastifyReply } from 'fastify'
import { clientOf } from '../domain/client-address.ts'
import { Failure } from '../domain/failure.ts'

const mostBuckets = 50_000

const addressKey = (address: string) => `address:${clientOf(address)}`

/** A token bucket per caller: `requestsPerSecond` in the long run, `burst` at once. */
export class RateLimiter {
  readonly #perSecond: number
  readonly #burst: number
  readonly #buckets = new Map<string, { tokens: number; at: number }>()

  constructor(limits: { requestsPerSecond: number; burst: number }) {
    this.#perSecond = limits.requestsPerSecond
    this.#burst = limits.burst
  }

  /** Counts one request without a caller, by where it comes from. */
  takeAddress(address: string, reply: FastifyReply): void {
    this.take(addressKey(address), reply)
  }

  /** Counts one request of the caller: 429 if that is one too many. */
  take(key: string, reply: FastifyReply): void {
    const tokens = this.#tokens(key)
    const isAllowed = tokens >= 1
    const left = isAllowed ? tokens - 1 : tokens
    // The least recently used bucket goes: whoever comes often is not forgotten for those who come once.
    this.#buckets.delete(key)
    if (this.#buckets.size >= mostBuckets) this.#buckets.delete(this.#buckets.keys().next().value!)
    this.#buckets.set(key, { tokens: left, at: performance.now() })
    this.#tell(left, reply)
    if (isAllowed) return
    const retryAfter = Math.max(1, Math.ceil((1 - tokens) / this.#perSecond))
    throw new Failure('rate_limited', `Too many requests: try again in ${retryAfter} s.`, {
      retryAfterSeconds: retryAfter,
    })
  }

  showAddress(address: string, reply: FastifyReply): void {
    this.show(addressKey(address), reply)
  }

  /** Tells how the caller stands, on an answer that does not count. */
  show(key: string, reply: FastifyReply): void {
    this.#tell(this.#tokens(key), reply)
  }

  #tokens(key: string): number {
    const bucket = this.#buckets.get(key)
    if (!bucket) return this.#burst
    const earned = ((performance.now() - bucket.at) / 1000) * this.#perSecond
    return Math.min(this.#burst, bucket.tokens + earned)
  }

  #tell(left: number, reply: FastifyReply): void {
    reply.header('RateLimit-Limit', String(this.#burst))
    reply.header('RateLimit-Remaining', String(Math.floor(left)))
    reply.header('RateLimit-Reset', String(Math.ceil((this.#burst - left) / this.#perSecond)))
  }
}
