import type { FastifyReply } from 'fastify'
import { clientOf } from '../domain/client-address.ts'
import { Failure } from '../domain/failure.ts'

const mostBuckets = 50_000
/** How often a bucket in use is marked as such. */
const markMs = 1_000

const addressKey = (address: string) => `address:${clientOf(address)}`

interface Bucket {
  tokens: number
  at: number
  /** When it last went to the end of the line of those to be forgotten. */
  markedAt: number
}

/** A token bucket per caller: `requestsPerSecond` in the long run, `burst` at once. */
export class RateLimiter {
  readonly #perSecond: number
  readonly #burst: number
  readonly #buckets = new Map<string, Bucket>()

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
    const now = performance.now()
    const bucket = this.#bucketOf(key, now)
    const tokens = this.#tokensIn(bucket, now)
    const isAllowed = tokens >= 1
    bucket.tokens = isAllowed ? tokens - 1 : tokens
    bucket.at = now
    this.#tell(bucket.tokens, reply)
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
    const bucket = this.#buckets.get(key)
    this.#tell(bucket ? this.#tokensIn(bucket, performance.now()) : this.#burst, reply)
  }

  /** The least recently used bucket goes: whoever comes often is not forgotten for those who come once. */
  #bucketOf(key: string, now: number): Bucket {
    const known = this.#buckets.get(key)
    if (known && now - known.markedAt < markMs) return known
    const bucket = known ?? { tokens: this.#burst, at: now, markedAt: now }
    bucket.markedAt = now
    this.#buckets.delete(key)
    if (this.#buckets.size >= mostBuckets) this.#buckets.delete(this.#buckets.keys().next().value!)
    this.#buckets.set(key, bucket)
    return bucket
  }

  #tokensIn({ tokens, at }: Bucket, now: number): number {
    return Math.min(this.#burst, tokens + ((now - at) / 1000) * this.#perSecond)
  }

  #tell(left: number, reply: FastifyReply): void {
    reply.header('ratelimit-limit', String(this.#burst))
    reply.header('ratelimit-remaining', String(Math.floor(left)))
    reply.header('ratelimit-reset', String(Math.ceil((this.#burst - left) / this.#perSecond)))
  }
}
