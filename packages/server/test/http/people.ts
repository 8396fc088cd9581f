import { randomUUID } from 'node:crypto'
import type { Role } from '@slipway/contract'
import { startSession } from '../../src/accounts/sessions.ts'
import { uuid } from '../../src/domain/ids.ts'
import { hashPassword } from '../../src/domain/password.ts'
import type { Database } from '../../src/store/database.ts'
import { insertMember } from '../../src/store/identity/members.ts'
import { insertOrganization } from '../../src/store/identity/organizations.ts'
import { insertUser } from '../../src/store/identity/users.ts'

export const password = 'correct horse battery'
/** Of all users alike: it takes time to make one. */
let passwordHash: Promise<string> | undefined

/** An e-mail address that nobody else in the file has. */
export const someEmail = (name = 'ada') => `${name}-${randomUUID()}@example.com`

export async function addOrganization(database: Database, name = 'Harbour Labs') {
  const { id } = await database.transaction((tx) => insertOrganization(tx, uuid(), name))
  const text = "UPDATE organizations SET payment_state = 'active' WHERE id = $1"
  await database.query({ text, values: [id] })
  return id
}

export async function addUser(
  database: Database,
  options: { isOperator?: boolean; memberOf?: Record<string, Role> } = {},
) {
  const email = someEmail()
  passwordHash ??= hashPassword(password)
  const hash = await passwordHash
  const id = uuid()
  await database.transaction(async (tx) => {
    await insertUser(tx, { id, email, passwordHash: hash, isOperator: options.isOperator ?? false })
    for (const [organizationId, role] of Object.entries(options.memberOf ?? {}))
      await insertMember(tx, organizationId, id, role)
  })
  return { id, email }
}

/** A session without the work of a password. */
export const tokenOf = async (database: Database, user: { id: string }): Promise<string> =>
  (await database.transaction((tx) => startSession(tx, user.id))).access_token

/** The clock of the store, and with it of every server on it, goes forward. */
export async function turnClock(database: Database, seconds: number) {
  const text = 'UPDATE clock SET shift = shift + make_interval(secs => $1)'
  await database.query({ text, values: [seconds] })
}
