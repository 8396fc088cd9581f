import { Failure, notFound } from '../domain/failure.ts'
import { hashSecret } from '../domain/secret.ts'
import { openSecret, sealSecret } from '../domain/secret-key.ts'
import {
  newRecoveryCodes,
  newTotpSecret,
  normaliseRecoveryCode,
  totpStep,
  totpUri,
} from '../domain/sign-in/totp.ts'
import type { Tx } from '../postgres/database.ts'
import { pingDatabase } from '../postgres/ping.ts'
import type { Services } from '../services.ts'
import { emit, type Requester } from '../store/events/events.ts'
import {
  beginTotp,
  confirmTotp,
  removeTotp,
  spendRecoveryCode,
  spendTotpStep,
} from '../store/identity/second-factors.ts'
import { markSecondFactor } from '../store/identity/sessions.ts'
import { revokeTokenFamiliesOfUser } from '../store/identity/tokens.ts'
import { lockUser, type UserRow } from '../store/identity/users.ts'
import { countedAttempt, requirePassword } from './passwords.ts'
import { emitUser, invalidGrant, type Visitor } from './visitor.ts'

/** A user about their own account. */
export interface Self {
  id: string
  email: string
  familyId: string
}

/** An account of single sign-on may show the address of somebody else's password account. */
export function requireSelf(user: UserRow, self: Self): void {
  if (user.id !== self.id) throw invalidGrant('This account has no password: it signs in by single sign-on.')
}

/** Returns what an authenticator reads. It counts for nothing until a code of it was shown. */
export function setUpTotp(
  services: Services,
  visitor: Visitor,
  self: Self,
  password: string,
): Promise<string> {
  return requirePassword(services, visitor, { email: self.email, password }, async (user) => {
    requireSelf(user, self)
    const { id } = user
    const secret = newTotpSecret()
    await services.database.transaction(async (tx) => {
      if ((await lockUser(tx, id))?.totp_confirmed_at)
        throw new Failure('conflict', 'There is a second factor already: remove it first.')
      await beginTotp(tx, id, sealSecret(services.secretKey, secret))
    })
    return totpUri(secret, self.email)
  })
}

/** Returns the recovery codes, here and nowhere else. Other sessions have to sign in again to have the second factor. */
export function confirmSecondFactor(
  services: Services,
  visitor: Visitor,
  self: Self,
  code: string,
): Promise<string[]> {
  return counted(services, visitor, self, async (tx, user) => {
    if (!user.totp_sealed || user.totp_confirmed_at)
      throw new Failure('conflict', 'There is nothing to confirm: begin with POST /v0.1/auth/totp.')
    if (!(await isTotpRight(tx, services, user, code))) throw wrongCode()
    const codes = newRecoveryCodes()
    await confirmTotp(tx, user.id, codes.map(recoveryHash))
    await markSecondFactor(tx, user.id, self.familyId, true)
    await emitUser(tx, visitor, 'user.totp_enabled', user.id)
    return codes
  })
}

export function removeSecondFactor(
  services: Services,
  visitor: Visitor,
  self: Self,
  code: string,
): Promise<void> {
  return counted(services, visitor, self, async (tx, user) => {
    if (!user.totp_confirmed_at) throw new Failure('conflict', 'There is no second factor to remove.')
    if (!(await isSecondFactorRight(tx, services, user, code))) throw wrongCode()
    await removeTotp(tx, user.id)
    await markSecondFactor(tx, user.id, null, false)
    await emitUser(tx, visitor, 'user.totp_removed', user.id)
  })
}

/** By an operator, for one who has lost it. */
export async function removeSecondFactorOf(tx: Tx, by: Requester, userId: string): Promise<void> {
  const user = await lockUser(tx, userId)
  if (!user) throw notFound('user')
  if (!user.totp_sealed) throw new Failure('conflict', 'This user has no second factor.')
  await removeTotp(tx, userId)
  await revokeTokenFamiliesOfUser(tx, userId)
  const { email } = user
  await emit(tx, {
    ...by,
    type: 'user.totp_removed',
    resourceType: 'user',
    resourceId: userId,
    data: { email },
  })
  tx.signal('access')
}

/** A recovery code works once, too. The caller holds the user's lock. */
export async function isSecondFactorRight(
  tx: Tx,
  services: Services,
  user: UserRow,
  code: string,
): Promise<boolean> {
  return (
    (await isTotpRight(tx, services, user, code)) ||
    (await spendRecoveryCode(tx, user.id, recoveryHash(code)))
  )
}

async function isTotpRight(tx: Tx, services: Services, user: UserRow, code: string): Promise<boolean> {
  if (!user.totp_sealed) return false
  const step = totpStep(openSecret(services.secretKey, user.totp_sealed), code, await pingDatabase(tx))
  return step !== null && spendTotpStep(tx, user.id, step)
}

/** Guesses count like those of passwords, also when the transaction comes to nothing. */
function counted<T>(
  services: Services,
  { address }: Visitor,
  self: Self,
  work: (tx: Tx, user: UserRow) => Promise<T>,
): Promise<T> {
  return countedAttempt(services, { email: self.email, address }, () =>
    services.database.transaction(async (tx) => {
      const user = await lockUser(tx, self.id)
      if (!user) throw notFound('user')
      tx.signal('access')
      return work(tx, user)
    }),
  )
}

const recoveryHash = (code: string) => hashSecret(normaliseRecoveryCode(code))
const wrongCode = () => invalidGrant('The code is wrong, or was used already.')
