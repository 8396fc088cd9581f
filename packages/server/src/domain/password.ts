import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { invalidField } from './failure.ts'
import { isCommonPassword } from './sign-in/common-passwords.ts'
import { Queue } from './sign-in/queue.ts'

/** Argon2id (the library's default) with 19 MiB and two passes takes a few tens of milliseconds on one core. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/**
 * Uses half of Node's thread pool, so that file access and DNS lookups do not wait for password hashing. An
 * client address has at most one entry in this queue (`accounts/passwords.ts`), so that client addresses take turns.
 */
const queue = new Queue(2, 200)

export const hashPassword = (password: string): Promise<string> => queue.inTurn(() => hash(password, cost))

/** `field` is the password's field in the request. */
export function refuseCommonPassword(password: string, field = 'password'): void {
  if (isCommonPassword(password))
    throw invalidField(field, 'is one of the most common passwords. Choose another one')
}

export function hashNewPassword(password: string, field?: string): Promise<string> {
  refuseCommonPassword(password, field)
  return hashPassword(password)
}

let decoy: Promise<string> | undefined

/**
 * If there is no stored hash, does the same work with a decoy, so that the duration does not reveal whether
 * the user exists.
 */
export async function isPasswordCorrect(passwordHash: string | null, password: string): Promise<boolean> {
  decoy ??= hash(randomBytes(32), cost)
  const against = passwordHash ?? (await decoy)
  const isCorrect = await queue.inTurn(() => verify(against, password))
  return isCorrect && passwordHash !== null
}
