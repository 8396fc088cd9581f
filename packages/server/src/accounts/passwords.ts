import { Failure } from '../domain/failure.ts'
import { isPasswordRight } from '../domain/password.ts'
import type { Services } from '../services.ts'
import { clearPasswordFailures, reservePasswordAttempt } from '../store/identity/password-failures.ts'
import { findUserByEmail, type UserRow } from '../store/identity/users.ts'
import { tellFailedSignIn } from './failed-sign-ins.ts'
import { invalidGrant, type Visitor } from './visitor.ts'

/**
 * Does what a right password allows. An unknown or suspended user gets the same answer after the same work as a wrong
 * password. Only when all is done do the attempts before it cease to count: guesses at a second factor add up.
 */
export function requirePassword<T>(
  services: Services,
  visitor: Visitor,
  attempt: { email: string; password: string },
  work: (user: UserRow) => Promise<T>,
): Promise<T> {
  const email = attempt.email.toLowerCase()
  return oneByOne(`${email} ${visitor.address}`, async () => {
    await countAttempt(services, email, visitor.address)
    const user = await findUserByEmail(services.database, email)
    const isRight = await isPasswordRight(user?.password_hash ?? null, attempt.password)
    if (!user || !isRight || user.suspended_at) {
      tellFailedSignIn(services, visitor, user, 'password')
      throw invalidGrant('The e-mail or the password is wrong.')
    }
    const result = await work(user)
    await clearPasswordFailures(services.database, email, visitor.address)
    return result
  })
}

/** Counts an attempt as failed until it turns out otherwise: 429 if that is one too many. */
export async function countAttempt(
  { database, config }: Services,
  email: string,
  address: string,
): Promise<void> {
  const waitSeconds = await database.transaction((tx) =>
    reservePasswordAttempt(tx, email, address, config.limits.passwordFailuresPerMinute),
  )
  if (waitSeconds > 0)
    throw new Failure('rate_limited', `Too many failed attempts: try again in ${waitSeconds} s.`, {
      retryAfterSeconds: waitSeconds,
    })
}

const mostInLine = 100
const lines = new Map<string, { length: number; tail: Promise<unknown> }>()

/**
 * An attempt is counted before it is made. By taking turns, many right ones at once are not taken for failures; the
 * count itself, which all processes share, does not depend on it.
 */
async function oneByOne<T>(key: string, work: () => Promise<T>): Promise<T> {
  const line = lines.get(key) ?? { length: 0, tail: Promise.resolve() }
  if (line.length >= mostInLine)
    throw new Failure('rate_limited', 'Too many attempts at once: try again in 1 s.', {
      retryAfterSeconds: 1,
    })
  lines.set(key, line)
  line.length++
  const turn = line.tail.then(work)
  line.tail = turn.catch(() => {})
  try {
    return await turn
  } finally {
    if (--line.length === 0) lines.delete(key)
  }
}
