import type { Role } from '@slipway/contract'
import { Failure, invalidField, notFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { normaliseEmail } from '../domain/names.ts'
import type { Tx } from '../store/database.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { insertMember } from '../store/identity/members.ts'
import { hasInvitation } from '../store/identity/one-time-codes.ts'
import { findOrganization } from '../store/identity/organizations.ts'
import { revokeTokenFamiliesOfUser } from '../store/identity/tokens.ts'
import {
  findUserByEmail,
  insertUser,
  lockUser,
  makeUserOperator,
  suspendUser,
  type UserRow,
} from '../store/identity/users.ts'
import { userView } from '../views/identity.ts'
import { createInvitation } from './credentials.ts'

export interface NewUser {
  email: string
  organization_id?: string
  role?: Role
  is_operator?: boolean
}

/** By an operator: a new user, a new member or a new operator. The code is for a user who needs an invitation. */
export async function addUser(
  tx: Tx,
  by: Requester,
  { email, organization_id: organizationId, role, is_operator }: NewUser,
): Promise<{ user: UserRow; code: string | undefined }> {
  if (organizationId !== undefined && role === undefined)
    throw invalidField('role', 'is required with organization_id')
  if (organizationId === undefined && role !== undefined)
    throw invalidField('organization_id', 'is required with role')
  if (organizationId !== undefined && !(await findOrganization(tx, organizationId)))
    throw invalidField('organization_id', 'there is no organization with this id')
  const { user: found, isNew } = await findOrInviteUser(tx, email)
  const becomesOperator = is_operator === true && !found.is_operator
  const becomesMember =
    organizationId !== undefined && role !== undefined
      ? await insertMember(tx, organizationId, found.id, role)
      : false
  // An invitation that ran out is given again: the user may be the only one of the organization.
  const isLost = found.password_hash === null && !(await hasInvitation(tx, found.id))
  if (!becomesOperator && !becomesMember && !isLost)
    throw new Failure('already_exists', 'There is such a user already.')
  const user = becomesOperator ? (await makeUserOperator(tx, found.id))! : found
  // To become an operator takes a fresh link: an organization may hold the one from before.
  const needsCode = isLost || (becomesOperator && user.password_hash === null)
  const code = needsCode ? await createInvitation(tx, user.id) : undefined
  await emit(tx, {
    ...by,
    type: isNew ? 'user.invited' : 'user.updated',
    resourceType: 'user',
    resourceId: user.id,
    organizationId: organizationId ?? null,
    data: { ...userView(user), ...(role && { role }) },
  })
  tx.signal('access')
  return { user, code }
}

/** A suspended user is signed out everywhere. */
export async function setUserSuspended(
  tx: Tx,
  by: Requester,
  userId: string,
  isSuspended: boolean,
): Promise<UserRow> {
  if (isSuspended && by.actor === `user:${userId}`)
    throw invalidField('suspended', 'you cannot suspend yourself')
  const user = await suspendUser(tx, userId, isSuspended)
  if (!user) throw notFound('user')
  if (isSuspended) await revokeTokenFamiliesOfUser(tx, user.id)
  await emit(tx, {
    ...by,
    type: isSuspended ? 'user.suspended' : 'user.restored',
    resourceType: 'user',
    resourceId: user.id,
    data: userView(user),
  })
  tx.signal('access')
  return user
}

/** Locked, so that nobody accepts an invitation or invites from elsewhere meanwhile. */
export async function findOrInviteUser(
  tx: Tx,
  givenEmail: string,
): Promise<{ user: UserRow; isNew: boolean }> {
  const email = normaliseEmail(givenEmail)
  if (email === null) throw invalidField('email', 'is not an e-mail address')
  const created = await insertUser(tx, { id: uuid(), email, passwordHash: null, isOperator: false })
  if (created) return { user: created, isNew: true }
  const known = await findUserByEmail(tx, email)
  return { user: (known && (await lockUser(tx, known.id)))!, isNew: false }
}
