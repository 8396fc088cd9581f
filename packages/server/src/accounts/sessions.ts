import type { TokenResponse } from '@slipway/contract'
import { clientOf } from '../domain/client-address.ts'
import { uuid } from '../domain/ids.ts'
import { hashSecret, newToken, open, seal } from '../domain/secret.ts'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { putKnownAddress } from '../store/identity/password-failures.ts'
import {
  findRefreshToken,
  insertTokenFamily,
  insertTokenPair,
  lockTokenFamily,
  revokeTokenFamily,
  spendRefreshToken,
  touchTokenFamily,
} from '../store/identity/tokens.ts'
import { recordSignIn } from '../store/identity/users.ts'
import type { Visitor } from './visitor.ts'

const accessSeconds = 3600
const refreshSeconds = 30 * 24 * 3600
/** How long a spent token returns its successor again, in case the response to its first use was lost. */
const graceSeconds = 10

const maxUserAgentLength = 200

/** Returns how long a session that began with a password can last. */
export const sessionOf = ({ config }: Services) => ({ maxAgeS: config.signIn.sessionDays * 86_400 })

interface NewSession {
  /** The session ends after this time, even if it is refreshed. */
  maxAgeS: number
  hasSecondFactor?: boolean
  oidcProvider?: string
  oidcSealed?: Buffer | null
}

/** Creates the first tokens of a session. */
export async function startSession(
  tx: Tx,
  userId: string,
  { maxAgeS, hasSecondFactor = false, oidcProvider, oidcSealed }: NewSession,
  client: Partial<Visitor> = {},
): Promise<TokenResponse> {
  const familyId = uuid()
  await insertTokenFamily(tx, {
    id: familyId,
    userId,
    address: client.address ?? '',
    userAgent: (client.userAgent ?? '').slice(0, maxUserAgentLength),
    hasSecondFactor,
    maxAgeS,
    oidcProvider: oidcProvider ?? null,
    oidcSealed: oidcSealed ?? null,
  })
  await recordSignIn(tx, userId)
  if (client.address) await putKnownAddress(tx, userId, clientOf(client.address))
  return createPair(tx, familyId)
}

/**
 * Replaces a refresh token with its successor. Returns `refused` if the token is unknown or expired, or the
 * session has ended. Returns `reusedOf` with the user if the token was already spent: the token may be stolen,
 * so the session is ended.
 */
export async function refreshSession(
  tx: Tx,
  refreshToken: string,
  address: string,
): Promise<TokenResponse | 'refused' | { reusedOf: string }> {
  const hash = hashSecret(refreshToken)
  const family = await lockTokenFamily(tx, hash)
  const token = family && (await findRefreshToken(tx, hash))
  if (!token || family.is_ended || token.is_expired) return 'refused'
  if (!token.is_spent) {
    const pair = await createPair(tx, family.id)
    await touchTokenFamily(tx, family.id, address)
    const sealed = seal(refreshToken, JSON.stringify(pair))
    await spendRefreshToken(tx, hash, hashSecret(pair.refresh_token), sealed)
    return pair
  }
  const age = token.spent_seconds_ago ?? graceSeconds
  if (age < graceSeconds && token.is_successor_spent === false && token.successor_sealed) {
    const pair: TokenResponse = JSON.parse(open(refreshToken, token.successor_sealed))
    return { ...pair, expires_in: Math.floor(pair.expires_in - age) }
  }
  await revokeTokenFamily(tx, family.id)
  tx.signal('access')
  return { reusedOf: family.user_id }
}

async function createPair(tx: Tx, familyId: string): Promise<TokenResponse> {
  const pair = { access_token: newToken('access'), refresh_token: newToken('refresh') }
  const seconds = await insertTokenPair(tx, {
    familyId,
    accessHash: hashSecret(pair.access_token),
    accessSeconds,
    refreshHash: hashSecret(pair.refresh_token),
    refreshSeconds,
  })
  return { ...pair, expires_in: Math.round(seconds), token_type: 'bearer' }
}
