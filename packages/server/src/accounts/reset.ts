import { Failure, requireFound } from '../domain/failure.ts'
import { hashNewPassword } from '../domain/password.ts'
import { hashSecret, newToken } from '../domain/secret.ts'
import { queueMail } from '../mail/queue.ts'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { emit, type Requester } from '../store/events/events.ts'
import {
  deleteResetCodes,
  findOneTimeCode,
  hasFreshResetCode,
  insertOneTimeCode,
  redeemOneTimeCode,
} from '../store/identity/one-time-codes.ts'
import { revokeTokenFamiliesOfUser } from '../store/identity/tokens.ts'
import { findUserByEmail, lockUser, markEmailVerified, setUserPassword } from '../store/identity/users.ts'
import { countAttempt, requireCode, takeTurn } from './passwords.ts'
import { badCode, emitUser, type Visitor } from './visitor.ts'

const resetSeconds = 3600

/** Creates a code to set a new password. Earlier codes of the user stop working. */
export async function createResetCode(
  tx: Tx,
  userId: string,
  isMailed: boolean,
): Promise<{ code: string; expiresAt: Date }> {
  const code = newToken('code')
  await deleteResetCodes(tx, userId)
  const hash = hashSecret(code)
  const { expires_at } = await insertOneTimeCode(tx, {
    hash,
    purpose: 'reset',
    userId,
    seconds: resetSeconds,
    isMailed,
  })
  return { code, expiresAt: expires_at }
}

/**
 * Mails a code if the address has an account. This does not delay the response, so that the response and its
 * time are the same for all addresses.
 */
export async function forgotPassword(services: Services, visitor: Visitor, given: string): Promise<void> {
  if (!services.config.mail)
    throw new Failure('conflict', 'This service does not send e-mail. Ask an operator for a reset link.')
  const email = given.toLowerCase()
  await countAttempt(services, email, visitor.address)
  void services.database
    .transaction(async (tx) => {
      const found = await findUserByEmail(tx, email)
      // Locked, so that only one of several concurrent requests creates a code.
      const user = found && (await lockUser(tx, found.id))
      if (!user || user.suspended_at || (await hasFreshResetCode(tx, user.id))) return
      const { code } = await createResetCode(tx, user.id, true)
      await emitUser(tx, visitor, 'user.reset_mailed', user.id)
      await queueMail(services, tx, {
        to: user.email,
        subject: 'Slipway: set a new password',
        text: `A new password was requested for your account. Set it here within an hour:\n\n${resetUrl(services, code)}\n\nIf you did not request this, ignore this message.`,
      })
    })
    .catch((err) => services.log.warn({ err }, 'password reset not sent'))
}

/** Browsers do not send what follows `#`, so no log contains the code. */
export const resetUrl = ({ publicUrl }: Services, code: string): string => `${publicUrl()}/reset#code=${code}`

/** Creates the code at the request of an operator, for a user who forgot the password. */
export async function createResetCodeForUser(
  tx: Tx,
  by: Requester,
  userId: string,
): Promise<{ code: string; expiresAt: Date }> {
  const { email, password_hash } = requireFound('user', await lockUser(tx, userId))
  if (password_hash === null)
    throw new Failure('conflict', 'This user has no password. The account uses single sign-on.')
  await emit(tx, {
    ...by,
    type: 'user.reset_offered',
    resourceType: 'user',
    resourceId: userId,
    data: { email },
  })
  return createResetCode(tx, userId, false)
}

/** Ends all sessions. Keeps the second factor, so that access to the mailbox is not enough to sign in. */
export async function resetPassword(
  services: Services,
  visitor: Visitor,
  given: { code: string; password: string },
): Promise<void> {
  const codeHash = hashSecret(given.code)
  const { database } = services
  await requireCode(services, visitor, () => findOneTimeCode(database, codeHash, 'reset'))
  const passwordHash = await takeTurn(visitor.address, () => hashNewPassword(given.password))
  await database.transaction(async (tx) => {
    const code = await redeemOneTimeCode(tx, codeHash, 'reset')
    const user = code?.user_id ? await lockUser(tx, code.user_id) : undefined
    if (!code || !user || user.suspended_at || user.password_hash === null) throw badCode()
    await setUserPassword(tx, user.id, passwordHash)
    if (code.is_mailed) await markEmailVerified(tx, user.id)
    await revokeTokenFamiliesOfUser(tx, user.id)
    await emitUser(tx, visitor, 'user.password_reset', user.id)
    tx.signal('access')
  })
}
