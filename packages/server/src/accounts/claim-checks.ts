import type { OidcConfig } from '../config/index.ts'
import { hashSecret } from '../domain/secret.ts'
import { openSecret, sealSecret } from '../domain/secret-key.ts'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { putProviderTokens, revokeTokenFamily, takeProviderTokens } from '../store/identity/tokens.ts'
import { type Confirmation, confirmIdentity } from './oidc-client.ts'
import { applyRoleClaims } from './single-sign-on.ts'
import { emitUser, type Visitor } from './visitor.ts'

/** The claims that the provider reports when a session is refreshed. */
interface ClaimCheck {
  familyId: string
  userId: string
  provider: OidcConfig
  confirmation: Confirmation
}

/**
 * Queries the provider outside of any transaction. Returns undefined if the session has no provider to query.
 */
export async function checkClaims(
  { database, config, secretKey, log }: Services,
  refreshToken: string,
): Promise<ClaimCheck | undefined> {
  const session = await takeProviderTokens(database, hashSecret(refreshToken))
  const provider = session && config.oidc.find(({ name }) => name === session.oidc_provider)
  // If the operator has removed the provider, the role lasts until its expiry.
  if (!provider) return undefined
  const tokens = JSON.parse(openSecret(secretKey, session.oidc_sealed))
  const confirmation = await confirmIdentity(provider, tokens)
  if (typeof confirmation.claims === 'string')
    log.info(
      { provider: provider.name, outcome: confirmation.claims },
      'single sign-on: claims not confirmed',
    )
  return { familyId: session.id, userId: session.user_id, provider, confirmation }
}

/** Applies the role in the claims, or ends the session if the provider no longer confirms the user. */
export async function applyClaimCheck(
  tx: Tx,
  services: Services,
  visitor: Visitor,
  { familyId, userId, provider, confirmation: { claims, tokens } }: ClaimCheck,
): Promise<void> {
  if (claims === 'refused') {
    await revokeTokenFamily(tx, familyId)
    await emitUser(tx, visitor, 'user.session_ended', userId, { data: { session_id: familyId } })
    tx.signal('access')
    return
  }
  if (claims !== 'unknown')
    await applyRoleClaims(tx, services, visitor, provider, userId, {
      issuer: tokens.issuer,
      roleClaims: claims,
    })
  await putProviderTokens(tx, familyId, sealSecret(services.secretKey, JSON.stringify(tokens)))
}
