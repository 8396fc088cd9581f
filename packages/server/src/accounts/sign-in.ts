import type { TokenResponse } from '@slipway/contract'
import { invalidField, notFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { hashNewPassword } from '../domain/password.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { findOneTimeCode, redeemOneTimeCode } from '../store/identity/one-time-codes.ts'
import { endSession } from '../store/identity/sessions.ts'
import { revokeTokenFamiliesOfUser, revokeTokenFamilyOf } from '../store/identity/tokens.ts'
import { insertUser, lockUser, setUserPassword, type UserRow } from '../store/identity/users.ts'
import { applyClaimCheck, checkClaims } from './claim-checks.ts'
import { emitToOrganizations, recordFailedSignIn } from './failed-sign-ins.ts'
import { requireEmail } from './invitations.ts'
import { requireCode, requirePassword, takeTurn } from './passwords.ts'
import { isSecondFactorCorrect, requireSelf, type Self } from './second-factor.ts'
import { refreshSession, sessionOf, startSession } from './sessions.ts'
import { badCode, emitUser, invalidGrant, type Visitor } from './visitor.ts'

/**
 * An account with two-factor authentication requires the password and a code. A missing code is reported only
 * if the password is correct.
 */
export function signIn(
  services: Services,
  visitor: Visitor,
  given: { email: string; password: string; totp_code?: string },
): Promise<TokenResponse> {
  return requirePassword(services, visitor, given, (user) =>
    services.database.transaction(async (tx) => {
      // The password may have been changed, or the user suspended, while it was being checked.
      const current = await lockUser(tx, user.id)
      if (!current || current.suspended_at || current.password_hash !== user.password_hash)
        throw invalidGrant('The e-mail or the password is wrong.')
      const hasSecondFactor = current.totp_confirmed_at !== null
      if (hasSecondFactor) await requireSecondFactor(tx, services, visitor, current, given.totp_code)
      await emitUser(tx, visitor, 'user.signed_in', user.id)
      return startSession(tx, user.id, { ...sessionOf(services), hasSecondFactor }, visitor)
    }),
  )
}

async function requireSecondFactor(
  tx: Tx,
  services: Services,
  visitor: Visitor,
  user: UserRow,
  code: string | undefined,
): Promise<void> {
  if (code === undefined)
    throw invalidGrant(
      'This account uses two-factor authentication. Send the code as totp_code.',
      'totp_required',
    )
  if (await isSecondFactorCorrect(tx, services, user, code)) return
  recordFailedSignIn(services, visitor, user, 'second_factor')
  throw invalidGrant('The two-factor code is wrong or was already used.')
}

/** Queries the provider of a single sign-on session first, so that a role ends soon after its claim is removed. */
export async function refresh(
  services: Services,
  visitor: Visitor,
  refreshToken: string,
): Promise<TokenResponse> {
  const check = await checkClaims(services, refreshToken)
  const outcome = await services.database.transaction(async (tx) => {
    if (check) await applyClaimCheck(tx, services, visitor, check)
    const result = await refreshSession(tx, refreshToken, visitor.address)
    if (typeof result === 'object' && 'reusedOf' in result)
      await emitToOrganizations(tx, visitor, 'user.refresh_token_reused', result.reusedOf, {})
    return result
  })
  if (outcome === 'refused' || 'reusedOf' in outcome)
    throw invalidGrant('The refresh token is unknown, used or expired. Sign in again.')
  return outcome
}

/** An unknown token is not an error, because there is no session to end. */
export async function signOut({ database }: Services, visitor: Visitor, refreshToken: string): Promise<void> {
  await database.transaction(async (tx) => {
    const revoked = await revokeTokenFamilyOf(tx, hashSecret(refreshToken))
    if (!revoked) return
    await emitUser(tx, visitor, 'user.signed_out', revoked.user_id)
    tx.signal('access')
  })
}

export async function endOwnSession(
  { database }: Services,
  visitor: Visitor,
  self: Self,
  sessionId: string,
): Promise<void> {
  await database.transaction(async (tx) => {
    if (!(await endSession(tx, self.id, sessionId))) throw notFound('session')
    await emitUser(tx, visitor, 'user.session_ended', self.id, { data: { session_id: sessionId } })
    tx.signal('access')
  })
}

export async function endOtherSessions({ database }: Services, visitor: Visitor, self: Self): Promise<void> {
  await database.transaction(async (tx) => {
    await revokeTokenFamiliesOfUser(tx, self.id, self.familyId)
    await emitUser(tx, visitor, 'user.session_ended', self.id, { data: { session_id: '' } })
    tx.signal('access')
  })
}

/** Also ends every other session of the user. */
export function changePassword(
  services: Services,
  visitor: Visitor,
  caller: Self,
  given: { current_password: string; new_password: string },
): Promise<void> {
  const attempt = { email: caller.email, password: given.current_password }
  return requirePassword(services, visitor, attempt, async (user) => {
    requireSelf(user, caller)
    const passwordHash = await hashNewPassword(given.new_password, 'new_password')
    await services.database.transaction(async (tx) => {
      const current = await lockUser(tx, user.id)
      if (current?.password_hash !== user.password_hash)
        throw invalidGrant('The password was changed by another request.')
      await setUserPassword(tx, user.id, passwordHash)
      await revokeTokenFamiliesOfUser(tx, user.id, caller.familyId)
      await emitUser(tx, visitor, 'user.password_changed', user.id)
      tx.signal('access')
    })
  })
}

/** Creates the account of the first operator with the setup code. */
export async function setUpOperator(
  services: Services,
  visitor: Visitor,
  given: { code: string; email: string; password: string },
): Promise<TokenResponse> {
  const { database } = services
  const codeHash = hashSecret(given.code)
  // The code is checked before the expensive hash. The transaction ensures that the code works only once.
  await requireCode(services, visitor, () => findOneTimeCode(database, codeHash, 'setup'))
  const email = requireEmail(given.email)
  const passwordHash = await takeTurn(visitor.address, () => hashNewPassword(given.password))
  return database.transaction(async (tx) => {
    if (!(await redeemOneTimeCode(tx, codeHash, 'setup'))) throw badCode()
    const user = await insertUser(tx, { id: uuid(), email, passwordHash, isOperator: true })
    if (!user) throw invalidField('email', 'already belongs to a user')
    await emitUser(tx, visitor, 'user.setup', user.id)
    return startSession(tx, user.id, sessionOf(services), visitor)
  })
}
