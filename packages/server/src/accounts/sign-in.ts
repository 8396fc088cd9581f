import type { EventType, TokenAnswer } from '@slipway/contract'
import { invalidField } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { normaliseEmail } from '../domain/names.ts'
import { hashPassword } from '../domain/password.ts'
import { hashSecret } from '../domain/secret.ts'
import type { Services } from '../services.ts'
import type { Tx } from '../store/database.ts'
import { emit } from '../store/events/events.ts'
import { organizationsOfUser } from '../store/identity/members.ts'
import { findOneTimeCode, redeemOneTimeCode } from '../store/identity/one-time-codes.ts'
import { revokeTokenFamiliesOfUser, revokeTokenFamilyOf } from '../store/identity/tokens.ts'
import { holdUser, insertUser, lockUser, setUserPassword } from '../store/identity/users.ts'
import { invalidGrant, requirePassword } from './passwords.ts'
import { refreshSession, startSession } from './sessions.ts'

/** A request without a credential, or about one's own. */
export interface Visitor {
  requestId: string
  /** Where the request comes from, by the rules of trusted proxies. */
  address: string
}

export async function signIn(
  services: Services,
  visitor: Visitor,
  given: { email: string; password: string },
): Promise<TokenAnswer> {
  const user = await requirePassword(services, { ...given, address: visitor.address })
  return services.database.transaction(async (tx) => {
    // The password may have been changed, or the user suspended, while it was being checked.
    const current = await holdUser(tx, user.id)
    if (!current || current.suspended_at || current.password_hash !== user.password_hash)
      throw invalidGrant('The e-mail or the password is wrong.')
    await emitUser(tx, visitor, 'user.signed_in', user.id)
    return startSession(tx, user.id)
  })
}

export async function refresh({ database }: Services, refreshToken: string): Promise<TokenAnswer> {
  const outcome = await database.transaction((tx) => refreshSession(tx, refreshToken))
  if (outcome === 'refused' || outcome === 'reused')
    throw invalidGrant('The refresh token is unknown, used or expired: sign in again.')
  return outcome
}

/** An unknown token is no error: what the caller wants is so. */
export async function signOut({ database }: Services, visitor: Visitor, refreshToken: string): Promise<void> {
  await database.transaction(async (tx) => {
    const revoked = await revokeTokenFamilyOf(tx, hashSecret(refreshToken))
    if (!revoked) return
    await emitUser(tx, visitor, 'user.signed_out', revoked.user_id)
    tx.signal('access')
  })
}

/** Ends every other session of the user. */
export async function changePassword(
  services: Services,
  visitor: Visitor,
  caller: { email: string; familyId: string },
  given: { current_password: string; new_password: string },
): Promise<void> {
  const attempt = { email: caller.email, password: given.current_password, address: visitor.address }
  const user = await requirePassword(services, attempt)
  const passwordHash = await hashPassword(given.new_password)
  await services.database.transaction(async (tx) => {
    const current = await lockUser(tx, user.id)
    if (current?.password_hash !== user.password_hash)
      throw invalidGrant('The password has just been changed elsewhere.')
    await setUserPassword(tx, user.id, passwordHash)
    await revokeTokenFamiliesOfUser(tx, user.id, caller.familyId)
    await emitUser(tx, visitor, 'user.password_changed', user.id)
    tx.signal('access')
  })
}

/** Redeems the set-up code: its holder becomes the first operator. */
export async function setUpOperator(
  { database }: Services,
  visitor: Visitor,
  given: { code: string; email: string; password: string },
): Promise<TokenAnswer> {
  const email = normaliseEmail(given.email)
  const codeHash = hashSecret(given.code)
  // Before the costly hash; that a code works once is decided in the transaction.
  if (!(await findOneTimeCode(database, codeHash, 'setup'))) throw badCode()
  if (email === null) throw invalidField('email', 'is not an e-mail address')
  const passwordHash = await hashPassword(given.password)
  return database.transaction(async (tx) => {
    if (!(await redeemOneTimeCode(tx, codeHash, 'setup'))) throw badCode()
    const user = await insertUser(tx, { id: uuid(), email, passwordHash, isOperator: true })
    if (!user) throw invalidField('email', 'belongs to a user already')
    await emitUser(tx, visitor, 'user.setup', user.id)
    return startSession(tx, user.id)
  })
}

/** Redeems an invitation: its holder chooses a password and is in. */
export async function acceptInvitation(
  { database }: Services,
  visitor: Visitor,
  given: { code: string; password: string },
): Promise<TokenAnswer> {
  const codeHash = hashSecret(given.code)
  if (!(await findOneTimeCode(database, codeHash, 'invite'))) throw badCode()
  const passwordHash = await hashPassword(given.password)
  return database.transaction(async (tx) => {
    const code = await redeemOneTimeCode(tx, codeHash, 'invite')
    const user = code?.user_id ? await lockUser(tx, code.user_id) : undefined
    if (!user || user.suspended_at || user.password_hash !== null) throw badCode()
    await setUserPassword(tx, user.id, passwordHash)
    const organizationIds = await organizationsOfUser(tx, user.id)
    for (const organizationId of organizationIds.length > 0 ? organizationIds : [null])
      await emitUser(tx, visitor, 'member.accepted', user.id, organizationId)
    tx.signal('access')
    return startSession(tx, user.id)
  })
}

const badCode = () => invalidGrant('The code is unknown, used or expired.')

/** There is no caller yet: the user whom it is about is the actor. */
const emitUser = (
  tx: Tx,
  { requestId }: Visitor,
  type: EventType,
  userId: string,
  organizationId: string | null = null,
): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'user',
    resourceId: userId,
    organizationId,
    actor: `user:${userId}`,
    requestId,
  })
