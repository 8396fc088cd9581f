import { Failure, requireFound } from '../domain/failure.ts'
import { hashSecret } from '../domain/secret.ts'
import { openSecret, sealSecret } from '../domain/secret-key.ts'
import {
  newRecoveryCodes,
  newTotpSecret,
  normalizeRecoveryCode,
  totpStep,
  totpUri,
} from '../domain/sign-in/totp.ts'
import type { Tx } from '../postgres/database.ts'
import { readServiceTime } from '../postgres/ping.ts'
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
import { requirePassword, runCountedAttempt } from './passwords.ts'
import { emitUser, invalidGrant, type Visitor } from './visitor.ts'

/** A signed-in user who changes their own account. */
export interface Self {
  id: string
  email: string
  familyId: string
}

/** A single sign-on account can have the same e-mail as another account, to which the password then belongs. */
export function requireSelf(user: UserRow, self: Self): void {
  if (user.id !== self.id) throw invalidGrant('This account has no password. It uses single sign-on.')
}

/** Returns the URI for an authenticator app. The second factor is active only after a code is confirmed. */
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
        throw new Failure('conflict', 'The account already uses two-factor authentication. Remove it first.')
      await beginTotp(tx, id, sealSecret(services.secretKey, secret))
    })
    return totpUri(secret, self.email)
  })
}

/**
 * Returns the recovery codes, which are stored only as hashes. Other sessions must sign in again with the
 * second factor.
 */
export function confirmSecondFactor(
  services: Services,
  visitor: Visitor,
  self: Self,
  code: string,
): Promise<string[]> {
  return runCountedChange(services, visitor, self, async (tx, user) => {
    if (!user.totp_sealed || user.totp_confirmed_at)
      throw new Failure(
        'conflict',
        'There is no two-factor setup to confirm. Begin with POST /v0.1/auth/totp.',
      )
    if (!(await isTotpCorrect(tx, services, user, code))) throw wrongCode()
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
  return runCountedChange(services, visitor, self, async (tx, user) => {
    if (!user.totp_confirmed_at)
      throw new Failure('conflict', 'This account does not use two-factor authentication.')
    if (!(await isSecondFactorCorrect(tx, services, user, code))) throw wrongCode()
    await removeTotp(tx, user.id)
    await markSecondFactor(tx, user.id, null, false)
    await emitUser(tx, visitor, 'user.totp_removed', user.id)
  })
}

/** Removes the second factor of a user who lost it, at the request of an operator. */
export async function removeSecondFactorOf(tx: Tx, by: Requester, userId: string): Promise<void> {
  const user = requireFound('user', await lockUser(tx, userId))
  if (!user.totp_sealed) throw new Failure('conflict', 'This user does not use two-factor authentication.')
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

/** Also accepts recovery codes, each only once. The caller must hold the user's lock. */
export async function isSecondFactorCorrect(
  tx: Tx,
  services: Services,
  user: UserRow,
  code: string,
): Promise<boolean> {
  return (
    (await isTotpCorrect(tx, services, user, code)) ||
    (await spendRecoveryCode(tx, user.id, recoveryHash(code)))
  )
}

async function isTotpCorrect(tx: Tx, services: Services, user: UserRow, code: string): Promise<boolean> {
  if (!user.totp_sealed) return false
  const step = totpStep(openSecret(services.secretKey, user.totp_sealed), code, await readServiceTime(tx))
  return step !== null && spendTotpStep(tx, user.id, step)
}

/** Wrong codes count like wrong passwords, even if the transaction is rolled back. */
function runCountedChange<T>(
  services: Services,
  { address }: Visitor,
  self: Self,
  work: (tx: Tx, user: UserRow) => Promise<T>,
): Promise<T> {
  return runCountedAttempt(services, { email: self.email, address }, () =>
    services.database.transaction(async (tx) => {
      const user = requireFound('user', await lockUser(tx, self.id))
      tx.signal('access')
      return work(tx, user)
    }),
  )
}

const recoveryHash = (code: string) => hashSecret(normalizeRecoveryCode(code))
const wrongCode = () => invalidGrant('The code is wrong or was already used.')
