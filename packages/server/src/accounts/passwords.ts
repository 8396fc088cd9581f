import { clientOf } from '../domain/client-address.ts'
import { Failure } from '../domain/failure.ts'
import { isPasswordCorrect } from '../domain/password.ts'
import type { Services } from '../services.ts'
import {
  clearPasswordFailures,
  releasePasswordAttempt,
  reservePasswordAttempt,
} from '../store/identity/password-failures.ts'
import { findUserByEmail, type UserRow } from '../store/identity/users.ts'
import { recordFailedSignIn } from './failed-sign-ins.ts'
import { badCode, invalidGrant, type Visitor } from './visitor.ts'

/**
 * Runs `work` if the password is correct. An unknown or suspended user gets the same response after the same
 * work as a wrong password. Earlier failures are cleared only after `work` succeeds, so that wrong second
 * factors count too.
 */
export function requirePassword<T>(
  services: Services,
  visitor: Visitor,
  given: { email: string; password: string },
  work: (user: UserRow) => Promise<T>,
): Promise<T> {
  const email = given.email.toLowerCase()
  return runCountedAttempt(services, { email, address: visitor.address }, async () => {
    const user = await findUserByEmail(services.database, email)
    const isCorrect = await isPasswordCorrect(user?.password_hash ?? null, given.password)
    if (!user || !isCorrect || user.suspended_at) {
      recordFailedSignIn(services, visitor, user, 'password')
      throw invalidGrant('The e-mail or the password is wrong.')
    }
    return work(user)
  })
}

/**
 * Runs `work` as a sign-in attempt: an error counts as a failure, and success clears the failures from this
 * address.
 */
export function runCountedAttempt<T>(
  services: Services,
  { email, address }: { email: string; address: string },
  work: () => Promise<T>,
): Promise<T> {
  return takeTurn(address, async () => {
    await countAttempt(services, email, address)
    const result = await work()
    await clearPasswordFailures(services.database, email, clientOf(address))
    return result
  })
}

/** Returns what the code refers to. An unknown code counts as a failed sign-in from the address. */
export function requireCode<T>(
  services: Services,
  { address }: { address: string },
  find: () => Promise<T | undefined>,
): Promise<T> {
  return takeTurn(address, async () => {
    const attemptId = await countAttempt(services, '', address)
    const found = await find()
    if (found === undefined) throw badCode()
    await releasePasswordAttempt(services.database, attemptId)
    return found
  })
}

/** Counts an attempt as failed until it is cleared, and returns its id; throws 429 above the limit. */
export async function countAttempt(
  { database, config }: Services,
  email: string,
  address: string,
): Promise<number> {
  const outcome = await database.transaction((tx) =>
    reservePasswordAttempt(tx, { email, address: clientOf(address) }, config.limits),
  )
  if ('id' in outcome) return outcome.id
  const { waitSeconds } = outcome
  throw new Failure('rate_limited', `Too many failed attempts. Try again in ${waitSeconds} s.`, {
    retryAfterSeconds: waitSeconds,
  })
}

const maxWaiting = 40
const queues = new Map<string, { length: number; tail: Promise<unknown> }>()

/**
 * Runs one attempt per address at a time, so that a flood of attempts from one address does not slow down
 * sign-ins from others. Attempts count as failed until they succeed, so without turns, concurrent correct
 * attempts could reach the limit, which all processes share.
 */
export async function takeTurn<T>(address: string, work: () => Promise<T>): Promise<T> {
  const client = clientOf(address)
  const queue = queues.get(client) ?? { length: 0, tail: Promise.resolve() }
  if (queue.length >= maxWaiting)
    throw new Failure('rate_limited', 'Too many concurrent attempts from your address. Try again in 1 s.', {
      retryAfterSeconds: 1,
    })
  queues.set(client, queue)
  queue.length++
  const turn = queue.tail.then(work)
  queue.tail = turn.catch(() => {})
  try {
    return await turn
  } finally {
    if (--queue.length === 0) queues.delete(client)
  }
}
