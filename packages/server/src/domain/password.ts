import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { Failure, invalidField } from './failure.ts'
import { isCommonPassword } from './sign-in/common-passwords.ts'

/** Argon2id, the library's default kind: 19 MiB and two passes, some tens of milliseconds of one core. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Half of Node's thread pool: files and name lookups must not wait behind passwords. */
const mostAtOnce = 2
const mostWaiting = 200

let running = 0
const waiting: (() => void)[] = []

/**
 * First come, first served: an address has at most one in this queue (`accounts/passwords.ts`), so that addresses take
 * turns. Whoever comes when it is full is sent away at once.
 */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= mostAtOnce) {
    if (waiting.length >= mostWaiting)
      throw new Failure('rate_limited', 'Too many people sign in at this moment: try again in 1 s.', {
        retryAfterSeconds: 1,
      })
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else running++
  try {
    return await work()
  } finally {
    // The place passes to the next in line, so that nobody new can slip in between.
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}

export const hashPassword = (password: string): Promise<string> => inTurn(() => hash(password, cost))

/** Refuses what everybody guesses first. `field` is where the request has it. */
export function refuseCommonPassword(password: string, field = 'password'): void {
  if (isCommonPassword(password))
    throw invalidField(field, 'is one of the passwords that are guessed first: choose another')
}

export function hashNewPassword(password: string, field?: string): Promise<string> {
  refuseCommonPassword(password, field)
  return hashPassword(password)
}

let decoy: Promise<string> | undefined

/** Without a stored hash it does the same work and says no: the time tells nobody whether the user exists. */
export async function isPasswordRight(passwordHash: string | null, password: string): Promise<boolean> {
  decoy ??= hash(randomBytes(32), cost)
  const against = passwordHash ?? (await decoy)
  const isRight = await inTurn(() => verify(against, password))
  return isRight && passwordHash !== null
}
