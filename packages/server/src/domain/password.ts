import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { invalidField } from './failure.ts'
import { isCommonPassword } from './sign-in/common-passwords.ts'
import { Queue } from './sign-in/queue.ts'

/** Argon2id, the library's default kind: 19 MiB and two passes, some tens of milliseconds of one core. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/**
 * Half of Node's thread pool: files and name lookups must not wait behind passwords. An address has at most one in this
 * queue (`accounts/passwords.ts`), so that addresses take turns.
 */
const queue = new Queue(2, 200)

export const hashPassword = (password: string): Promise<string> => queue.inTurn(() => hash(password, cost))

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
  const isRight = await queue.inTurn(() => verify(against, password))
  return isRight && passwordHash !== null
}
