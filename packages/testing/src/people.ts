import { randomUUID } from 'node:crypto'
import type { PaymentState, Role } from '@slipway/contract'
import { startSession } from '@slipway/server/accounts/sessions.ts'
import { uuid } from '@slipway/server/domain/ids.ts'
import { hashPassword } from '@slipway/server/domain/password.ts'
import type { Database } from '@slipway/server/postgres/database.ts'
import { insertMember } from '@slipway/server/store/identity/members.ts'
import { insertOrganization } from '@slipway/server/store/identity/organizations.ts'
import { insertUser } from '@slipway/server/store/identity/users.ts'
import type { TestService } from './service.ts'

/** The password of every user that `addUser` creates. */
export const password = 'correct horse battery'
/** Shared by all users, because hashing takes time. */
let passwordHash: Promise<string> | undefined

/** Returns a unique e-mail address. */
export const someEmail = (name = 'ada') => `${name}-${randomUUID()}@example.com`

export interface NewUser {
  email?: string
  isOperator?: boolean
  /** Roles by organization. */
  memberOf?: Record<string, Role>
}

/** Adds a user who has accepted an invitation. */
export async function addUser(database: Database, user: NewUser = {}) {
  const { email = someEmail(), isOperator = false, memberOf = {} } = user
  passwordHash ??= hashPassword(password)
  const hash = await passwordHash
  const id = uuid()
  await database.transaction(async (tx) => {
    await insertUser(tx, { id, email, passwordHash: hash, isOperator })
    for (const [organizationId, role] of Object.entries(memberOf))
      await insertMember(tx, organizationId, id, role)
  })
  return { id, email }
}

/** Creates a session without hashing a password. */
export const tokenOf = async (database: Database, user: { id: string }): Promise<string> =>
  (await database.transaction((tx) => startSession(tx, user.id, { maxAgeS: 30 * 86_400 }))).access_token

/** Creates a session of a new user. */
export const tokenOfNew = async (database: Database, user: NewUser): Promise<string> =>
  tokenOf(database, await addUser(database, user))

/** Creates a session of the demo's owner. */
export async function ownerToken({ database, credentials, sql }: TestService): Promise<string> {
  const [owner] = await sql<{ id: string }>('SELECT id FROM users WHERE email = $1', [credentials.email])
  return tokenOf(database, owner!)
}

/** Extends all sessions, so that tests that move the clock do not lose them. */
export async function keepSessions({ sql }: Pick<TestService, 'sql'>): Promise<void> {
  for (const tokens of ['access_tokens', 'refresh_tokens', 'token_families'])
    await sql(`UPDATE ${tokens} SET expires_at = '2100-01-01'`)
}

/** Adds an organization with a payment method. */
export async function addOrganization(database: Database, name = 'Harbour Labs'): Promise<string> {
  const { id } = await database.transaction((tx) => insertOrganization(tx, uuid(), name))
  await setPayment(database, id, 'active')
  return id
}

/** Sets the payment state, as the payment provider would. */
export async function setPayment(
  database: Database,
  organizationId: string,
  state: PaymentState,
): Promise<void> {
  const text = 'UPDATE organizations SET payment_state = $2 WHERE id = $1'
  await database.query({ text, values: [organizationId, state] })
}

export async function addProject(
  service: TestService,
  token: string,
  organization_id: string,
  name: string,
): Promise<string> {
  return (await service.ok('projectCreate', { token, body: { name, organization_id } })).id
}

export async function addKey(
  service: TestService,
  token: string,
  project_id: string,
  role: 'read' | 'write',
): Promise<{ id: string; secret: string }> {
  return service.ok('accessKeyCreate', { token, params: { project_id }, body: { name: role, role } })
}
