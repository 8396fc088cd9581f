import type { EventType, Role } from '@slipway/contract'
import { Failure, invalidField, requireFound } from '../domain/failure.ts'
import { requireOrganizationQuota } from '../operations/admission.ts'
import type { Tx } from '../postgres/database.ts'
import { holdLock } from '../postgres/locks.ts'
import { emit, type Requester } from '../store/events/events.ts'
import { revokeOperatorKeysOfUser } from '../store/identity/access-keys.ts'
import { deleteOperatorInvitation, type InvitationRow, type Inviter } from '../store/identity/invitations.ts'
import { isMemberEmail } from '../store/identity/members.ts'
import { findOrganization } from '../store/identity/organizations.ts'
import { revokeTokenFamiliesOfUser } from '../store/identity/tokens.ts'
import {
  findUserByEmail,
  hasOtherOperator,
  lockUser,
  type PersonRow,
  revokeOperatorRole,
  suspendUser,
  type UserRow,
} from '../store/identity/users.ts'
import { userView } from '../views/identity.ts'
import { emitKeysRevoked } from './access-keys.ts'
import { endInvitationsOfUser, invite, type Offer, requireEmail } from './invitations.ts'

export interface NewUser {
  email: string
  organization_id?: string
  role?: Role
  is_operator?: boolean
}

/** Creates one link that offers a user an account, a membership, operator rights, or several of these. */
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
    throw invalidField('organization_id', 'does not exist')
  const email = requireEmail(given)
  const known = await findUserByEmail(tx, email)
  const offers: Offer[] = []
  if (organizationId && role && !(await isMemberEmail(tx, organizationId, email)))
    offers.push({ organizationId, role, isOperator: false })
  if (is_operator && !known?.is_operator) offers.push({ organizationId: null, role: null, isOperator: true })
  if (!organizationId && !is_operator && !known)
    offers.push({ organizationId: null, role: null, isOperator: false })
  if (offers.length === 0) throw new Failure('already_exists', 'This user already exists with these rights.')
  const { invitations, code } = await invite(tx, email, offers, inviter)
  if (organizationId) await requireOrganizationQuota(tx, { ...by, organizationId }, 'members')
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

/** A suspended user is signed out, and the user's keys do not work until the user is restored. */
export async function setUserSuspended(
  tx: Tx,
  by: Requester,
  userId: string,
  isSuspended: boolean,
): Promise<UserRow> {
  if (isSuspended && by.actor === `user:${userId}`)
    throw invalidField('suspended', 'cannot be true for your own account')
  const user = requireFound('user', await suspendUser(tx, userId, isSuspended))
  if (isSuspended) {
    await revokeTokenFamiliesOfUser(tx, user.id)
    await endInvitationsOfUser(tx, by, user.id)
  }
  await emitUserBy(tx, by, isSuspended ? 'user.suspended' : 'user.restored', user)
  return user
}

/** Also revokes the user's operator keys, or withdraws the invitation to become an operator. */
export async function removeOperatorRights(tx: Tx, by: Requester, userId: string): Promise<PersonRow> {
  const taken = await deleteOperatorInvitation(tx, userId)
  if (taken) {
    const person = { ...personOf([taken]), is_operator: false }
    await emitUserBy(tx, by, 'user.operator_removed', person)
    return person
  }
  // Two operators who remove each other at the same time must not both succeed.
  await holdLock(tx, 'operators')
  const user = requireFound('user', await lockUser(tx, userId))
  if (!user.is_operator) throw new Failure('conflict', 'This user is not an operator.')
  if (!(await hasOtherOperator(tx, userId)))
    throw new Failure('conflict', 'This is the last operator. Make another user an operator first.')
  const changed = (await revokeOperatorRole(tx, userId))!
  await emitKeysRevoked(tx, by, await revokeOperatorKeysOfUser(tx, userId))
  await endInvitationsOfUser(tx, by, userId)
  await emitUserBy(tx, by, 'user.operator_removed', changed)
  return changed
}

function emitUserBy(tx: Tx, by: Requester, type: EventType, user: PersonRow): Promise<void> {
  tx.signal('access')
  return emit(tx, { ...by, type, resourceType: 'user', resourceId: user.id, data: userView(user) })
}
