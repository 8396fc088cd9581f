import { clientOf } from '../domain/client-address.ts'
import { Failure } from '../domain/failure.ts'
import { isPasswordRight } from '../domain/password.ts'
import type { Services } from '../services.ts'
import {
  clearPasswordFailures,
  reservePasswordAttempt,
  takeBackPasswordAttempt,
} from '../store/identity/password-failures.ts'
import { findUserByEmail, type UserRow } from '../store/identity/users.ts'
import { tellFailedSignIn } from './failed-sign-ins.ts'
import { badCode, invalidGrant, type Visitor } from './visitor.ts'

/**
 * Does what a right password allows. An unknown or suspended user gets the same answer after the same work as a wrong
 * password. Only when all is done do the attempts before it cease to count: guesses at a second factor add up.
 */
export function requirePassword<T>(
  services: Services,
  visitor: Visitor,
  given: { email: string; password: string },
  work: (user: UserRow) => Promise<T>,
): Promise<T> {
  const email = given.email.toLowerCase()
  return countedAttempt(services, { email, address: visitor.address }, async () => {
    const user = await findUserByEmail(services.database, email)
    const isRight = await isPasswordRight(user?.password_hash ?? null, given.password)
    if (!user || !isRight || user.suspended_at) {
      tellFailedSignIn(services, visitor, user, 'password')
      throw invalidGrant('The e-mail or the password is wrong.')
    }
    return work(user)
  })
}

/** Whatever is not done counts as a failed sign-in of the e-mail; what is done clears those from its address. */
export function countedAttempt<T>(
  services: Services,
  { email, address }: { email: string; address: string },
  work: () => Promise<T>,
): Promise<T> {
  return inLine(address, async () => {
    await countAttempt(services, email, address)
    const result = await work()
    await clearPasswordFailures(services.database, email, clientOf(address))
    return result
  })
}

/** What a code stands for. Codes that stand for nothing count as failed sign-ins of the address. */
export function requireCode<T>(
  services: Services,
  { address }: { address: string },
  find: () => Promise<T | undefined>,
): Promise<T> {
  return inLine(address, async () => {
    const attemptId = await countAttempt(services, '', address)
    const found = await find()
    if (found === undefined) throw badCode()
    await takeBackPasswordAttempt(services.database, attemptId)
    return found
  })
}

/** Counts an attempt as failed until it turns out otherwise, and returns its id: 429 if that is one too many. */
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
  throw new Failure('rate_limited', `Too many failed attempts: try again in ${waitSeconds} s.`, {
    retryAfterSeconds: waitSeconds,
  })
}

const mostInLine = 40
const lines = new Map<string, { length: number; tail: Promise<unknown> }>()

/**
 * An address makes one attempt at a time, so that a flood from one takes no more of the processor than an honest
 * sign-in from another. Attempts are counted before they are made: by taking turns, many right ones at once are not
 * taken for failures. The count itself, which all processes share, does not depend on it.
 */
export async function inLine<T>(address: string, work: () => Promise<T>): Promise<T> {
  const client = clientOf(address)
  const line = lines.get(client) ?? { length: 0, tail: Promise.resolve() }
  if (line.length >= mostInLine)
    throw new Failure('rate_limited', 'Too many attempts at once from your address: try again in 1 s.', {
      retryAfterSeconds: 1,
    })
  lines.set(client, line)
  line.length++
  const turn = line.tail.then(work)
  line.tail = turn.catch(() => {})
  try {
    return await turn
  } finally {
    if (--line.length === 0) lines.delete(client)
  }
}
