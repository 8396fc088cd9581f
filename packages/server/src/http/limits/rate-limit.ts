import type { FastifyReply } from 'fastify'
import { clientOf } from '../../domain/client-address.ts'
import { Failure } from '../../domain/failure.ts'

const maxBuckets = 50_000
/** A bucket in use moves to the end of the eviction order at most this often. */
const markMs = 1_000

const addressKey = (address: string) => `address:${clientOf(address)}`

interface Bucket {
  tokens: number
  at: number
  /** True if the last request got a token. */
  isAllowed: boolean
  /** When the bucket last moved to the end of the eviction order. */
  markedAt: number
}

/**
 * A token bucket per caller or organization, which holds up to `burst` tokens and gains `requestsPerSecond`
 * tokens each second.
 */
export class RateLimiter {
  readonly #perSecond: number
  readonly #burst: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(limits: { requestsPerSecond: number; burst: number }) {
    this.#perSecond = limits.requestsPerSecond
    this.#burst = limits.burst
  }

  /** Counts one request without a caller. */
  takeAddress(address: string, reply: FastifyReply): void {
    this.take(addressKey(address), reply)
  }

  /** Counts one request of the caller; throws 429 above the limit. */
  take(key: string, reply: FastifyReply): void {
    const bucket = this.#take(key)
    this.#setHeaders(bucket.tokens, reply)
    if (bucket.isAllowed) return
    const seconds = this.#secondsUntilNext(bucket)
    throw new Failure('rate_limited', `Too many requests. Try again in ${seconds} s.`, {
      retryAfterSeconds: seconds,
    })
  }

  /**
   * Counts one request against the limit that all callers of an organization share. The headers show this
   * limit only if it refuses the request.
   */
  takeOrganization(organization: string, reply: FastifyReply): void {
    const bucket = this.#take(organization)
    if (bucket.isAllowed) return
    this.#setHeaders(bucket.tokens, reply)
    const seconds = this.#secondsUntilNext(bucket)
    throw new Failure('rate_limited', `Too many requests from the organization. Try again in ${seconds} s.`, {
      retryAfterSeconds: seconds,
    })
  }

  #take(key: string): Bucket {
    const now = performance.now()
    const bucket = this.#bucketOf(key, now)
    const tokens = this.#tokensIn(bucket, now)
    bucket.isAllowed = tokens >= 1
    bucket.tokens = bucket.isAllowed ? tokens - 1 : tokens
    bucket.at = now
    return bucket
  }

  #secondsUntilNext({ tokens }: Bucket): number {
    return Math.max(1, Math.ceil((1 - tokens) / this.#perSecond))
  }

  /** Adds the headers to a response that does not count against the limit. */
  showAddress(address: string, reply: FastifyReply): void {
    const bucket = this.#buckets.get(addressKey(address))
    this.#setHeaders(bucket ? this.#tokensIn(bucket, performance.now()) : this.#burst, reply)
  }

  /** Returns the bucket of the key. If there are too many buckets, the least recently used one is removed. */
  #bucketOf(key: string, now: number): Bucket {
    const known = this.#buckets.get(key)
    if (known && now - known.markedAt < markMs) return known
    const bucket = known ?? { tokens: this.#burst, at: now, isAllowed: true, markedAt: now }
    bucket.markedAt = now
    this.#buckets.delete(key)
    if (this.#buckets.size >= maxBuckets) this.#buckets.delete(this.#buckets.keys().next().value!)
    this.#buckets.set(key, bucket)
    return bucket
  }

  #tokensIn({ tokens, at }: Bucket, now: number): number {
    return Math.min(this.#burst, tokens + ((now - at) / 1000) * this.#perSecond)
  }

  #setHeaders(left: number, reply: FastifyReply): void {
    reply.header('ratelimit-limit', String(this.#burst))
    reply.header('ratelimit-remaining', String(Math.floor(left)))
    reply.header('ratelimit-reset', String(Math.ceil((this.#burst - left) / this.#perSecond)))
  }
}
