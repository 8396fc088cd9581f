import type { EventType, Role } from '@slipway/contract'
import { Failure, invalidField, notFound } from '../domain/failure.ts'
import { requireRoom } from '../operations/admission.ts'
import type { Tx } from '../postgres/database.ts'
import { holdLock } from '../postgres/locks.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { revokeOperatorKeysOfUser } from '../store/identity/access-keys.ts'
import { deleteMarkInvitation, type InvitationRow, type Inviter } from '../store/identity/invitations.ts'
import { isMemberEmail } from '../store/identity/members.ts'
import { findOrganization } from '../store/identity/organizations.ts'
import { revokeTokenFamiliesOfUser } from '../store/identity/tokens.ts'
import {
  findUserByEmail,
  hasOtherOperator,
  lockUser,
  type PersonRow,
  suspendUser,
  takeOperatorMark,
  type UserRow,
} from '../store/identity/users.ts'
import { userView } from '../views/identity.ts'
import { emitKeysRevoked } from './access-keys.ts'
import { endInvitationsOfUser, type Grant, invite, requireEmail } from './invitations.ts'

export interface NewUser {
  email: string
  organization_id?: string
  role?: Role
  is_operator?: boolean
}

/** By an operator: one link to an account, a membership, the operator's mark, or several of them. */
export async function inviteUser(
  tx: Tx,
  by: Requester,
  inviter: Inviter,
  { email: given, organization_id: organizationId, role, is_operator }: NewUser,
): Promise<{ user: PersonRow; code: string }> {
  if (organizationId !== undefined && role === undefined)
    throw invalidField('role', 'is required with organization_id')
  if (organizationId === undefined && role !== undefined)
    throw invalidField('organization_id', 'is required with role')
  if (organizationId !== undefined && !(await findOrganization(tx, organizationId)))
    throw invalidField('organization_id', 'there is no organization with this id')
  const email = requireEmail(given)
  const known = await findUserByEmail(tx, email)
  const grants: Grant[] = []
  if (organizationId && role && !(await isMemberEmail(tx, organizationId, email)))
    grants.push({ organizationId, role, isOperator: false })
  if (is_operator && !known?.is_operator) grants.push({ organizationId: null, role: null, isOperator: true })
  if (!organizationId && !is_operator && !known)
    grants.push({ organizationId: null, role: null, isOperator: false })
  if (grants.length === 0) throw new Failure('already_exists', 'There is such a user already.')
  const { invitations, code } = await invite(tx, email, grants, inviter)
  if (organizationId) await requireRoom(tx, { ...by, organizationId }, 'members')
  const user = personOf(invitations)
  await emit(tx, {
    ...by,
    type: 'user.invited',
    resourceType: 'user',
    resourceId: user.id,
    organizationId: organizationId ?? null,
    data: { ...userView(user), ...(role && { role }) },
  })
  return { user, code }
}

const personOf = ([first, ...more]: InvitationRow[]): PersonRow => ({
  ...first!,
  is_operator: [first!, ...more].some(({ is_operator }) => is_operator),
  is_invited: true,
  suspended_at: null,
})

/** A suspended user is signed out everywhere, and the keys that this user made stop until the user is restored. */
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
  if (isSuspended) {
    await revokeTokenFamiliesOfUser(tx, user.id)
    await endInvitationsOfUser(tx, by, user.id)
  }
  await emitUserBy(tx, by, isSuspended ? 'user.suspended' : 'user.restored', user)
  return user
}

/** Ends the operator keys that the user made, too. An invitation to be an operator is taken back. */
export async function removeOperatorMark(tx: Tx, by: Requester, userId: string): Promise<PersonRow> {
  const taken = await deleteMarkInvitation(tx, userId)
  if (taken) {
    const person = { ...personOf([taken]), is_operator: false }
    await emitUserBy(tx, by, 'user.operator_removed', person)
    return person
  }
  // Two who take each other's mark away must not both succeed.
  await holdLock(tx, 'operators')
  const user = await lockUser(tx, userId)
  if (!user) throw notFound('user')
  if (!user.is_operator) throw new Failure('conflict', 'This user is not an operator.')
  if (!(await hasOtherOperator(tx, userId)))
    throw new Failure('conflict', 'The last operator must stay one: make someone else an operator first.')
  const changed = (await takeOperatorMark(tx, userId))!
  await emitKeysRevoked(tx, by, await revokeOperatorKeysOfUser(tx, userId))
  await endInvitationsOfUser(tx, by, userId)
  await emitUserBy(tx, by, 'user.operator_removed', changed)
  return changed
}

function emitUserBy(tx: Tx, by: Requester, type: EventType, user: PersonRow): Promise<void> {
  tx.signal('access')
  return emit(tx, { ...by, type, resourceType: 'user', resourceId: user.id, data: userView(user) })
}
