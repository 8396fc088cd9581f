import type { FastifyReply, FastifyRequest } from 'fastify'
import { signingSecretOf } from '../../domain/access-key.ts'
import { Failure } from '../../domain/failure.ts'
import { openSecret } from '../../domain/secret-key.ts'
import type { Caller } from '../../store/identity/access.ts'
import { findSigningKey } from '../../store/identity/access-keys.ts'
import { readBearer } from '../access.ts'
import type { HttpServices } from '../context.ts'
import { RateLimiter } from '../limits/rate-limit.ts'
import { RecentKeys, ShortCache } from '../short-cache.ts'
import { isCurrent, isSignedWith, readSigned } from './signature.ts'

/** The caller of a signed request. */
export interface Signer {
  caller: Caller
  /** The access key for the requests to Slipway's own API. */
  bearer: string
  keyId: string
  signature: string
  /** The address of the client, which the request no longer has once the client has disconnected. */
  address: string
}

interface OpenedKey {
  bearer: string
  secret: string
}

/**
 * Verifies signatures. A verified request has the rights of its access key, and counts towards that key's limits.
 */
export class SigningKeys {
  readonly #services: HttpServices
  readonly #limiter: RateLimiter
  readonly #opened: ShortCache<OpenedKey | null>
  readonly #recentlyValid = new RecentKeys()
  /** An unknown key id needs a database query, so attempts to guess one have their own limit. */
  readonly #unknownKeys: RateLimiter

  constructor(services: HttpServices, limiter: RateLimiter) {
    this.#services = services
    this.#limiter = limiter
    const perSecond = services.config.limits.unknownBearersPerSecond
    this.#unknownKeys = new RateLimiter({ requestsPerSecond: perSecond, burst: 5 * perSecond })
    this.#opened = new ShortCache(async (keyId) => {
      const row = await findSigningKey(services.database, keyId)
      if (!row) return null
      const bearer = openSecret(services.secretKey, row.signing_sealed)
      return { bearer, secret: signingSecretOf(bearer) }
    })
    services.signals.on('access', () => this.#opened.clear())
  }

  /**
   * Throws 401 unless the request has a current signature by a valid key, and 429 after too many failures.
   */
  async verify(request: FastifyRequest, reply: FastifyReply): Promise<Signer> {
    try {
      return await this.#verify(request, reply)
    } catch (error) {
      this.#limiter.takeAddress(request.ip, reply)
      throw error
    }
  }

  async #verify(request: FastifyRequest, reply: FastifyReply): Promise<Signer> {
    const signed = readSigned(request.headers)
    if (!signed)
      throw unauthenticated(
        'Sign the request: send "Authorization: Bearer 1.0:<access key id>:<signature>" and X-Crusoe-Timestamp.',
      )
    const { keyId, signature, timestamp } = signed
    const address = request.ip
    if (!isCurrent(timestamp))
      throw unauthenticated(
        `X-Crusoe-Timestamp must be an RFC 3339 time within 5 minutes of the service’s clock, which shows ${new Date().toISOString()}.`,
      )
    if (!this.#recentlyValid.has(keyId)) this.#unknownKeys.takeAddress(request.ip, reply)
    const key = await this.#opened.get(keyId)
    if (!key || !isSignedWith(key.secret, signed, request))
      throw unauthenticated('The access key id is unknown, or the signature is wrong.')
    const { bearer } = key
    const caller = await this.#services.access.authenticate(
      readBearer({ authorization: `Bearer ${bearer}` }),
      address,
    )
    this.#recentlyValid.add(keyId)
    return { caller, bearer, keyId, signature, address }
  }
}

const unauthenticated = (message: string) => new Failure('unauthenticated', message)
