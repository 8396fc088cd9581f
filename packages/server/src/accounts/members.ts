import { type EventType, type Role, roles } from '@slipway/contract'
import { Failure, requireFound } from '../domain/failure.ts'
import { requireOrganizationQuota } from '../operations/admission.ts'
import type { Tx } from '../postgres/database.ts'
import { emit, type OrganizationRequester } from '../store/events/events.ts'
import type { AccessKeyRow } from '../store/identity/access-keys.ts'
import { deleteInvitation, type Inviter, setInvitationRole } from '../store/identity/invitations.ts'
import {
  deleteMember,
  findMember,
  hasActiveOwner,
  isMemberEmail,
  type MemberRow,
  updateMember,
} from '../store/identity/members.ts'
import { lockOrganization } from '../store/identity/organizations.ts'
import { memberView } from '../views/identity.ts'
import { invite, requireEmail } from './invitations.ts'
import { endGrantsOfMember } from './lost-roles.ts'

/** The membership begins when the link is used, with an existing or a new account. */
export async function inviteMember(
  tx: Tx,
  by: OrganizationRequester,
  inviter: Inviter,
  given: { email: string; role: Role },
): Promise<{ member: MemberRow; code: string }> {
  const email = requireEmail(given.email)
  await lockOrganization(tx, by.organizationId)
  if (await isMemberEmail(tx, by.organizationId, email))
    throw new Failure('already_exists', 'This user is already a member. Change the role instead.')
  const offer = { organizationId: by.organizationId, role: given.role, isOperator: false }
  const { invitations, code } = await invite(tx, email, [offer], inviter)
  await requireOrganizationQuota(tx, by, 'members')
  const member = (await findMember(tx, by.organizationId, invitations[0]!.id))!
  await emitMember(tx, by, 'member.invited', member)
  return { member, code }
}

/** Creates a new link for an invited member. The previous link stops working. */
export async function inviteMemberAgain(
  tx: Tx,
  by: OrganizationRequester,
  inviter: Inviter,
  id: string,
): Promise<{ member: MemberRow; code: string }> {
  const { email, role, is_invited } = await lockAndReadMember(tx, by, id)
  if (!is_invited) throw new Failure('conflict', 'This member has already accepted the invitation.')
  return inviteMember(tx, by, inviter, { email, role })
}

/**
 * A demotion ends the invitations and organization keys that need the previous role. Returns the project keys of a demoted
 * member that still work.
 */
export async function changeMember(
  tx: Tx,
  by: OrganizationRequester,
  userId: string,
  role: Role,
  isRevokingKeys: boolean,
): Promise<{ member: MemberRow; keys: AccessKeyRow[] }> {
  const before = await lockAndReadMember(tx, by, userId)
  const isDemotion = !before.is_invited && roles.indexOf(role) < roles.indexOf(before.role)
  if (before.is_invited) await setInvitationRole(tx, by.organizationId, userId, role)
  else {
    await updateMember(tx, by.organizationId, userId, role)
    if (before.role === 'owner') await requireOwner(tx, by.organizationId)
  }
  const keys = isDemotion ? await endGrantsOfMember(tx, by, userId, role, isRevokingKeys) : []
  const member = { ...before, role }
  await emitMember(tx, by, 'member.updated', member, { previous_role: before.role })
  return { member, keys }
}

/** Returns the project keys of the member that still work. */
export async function removeMember(
  tx: Tx,
  by: OrganizationRequester,
  userId: string,
  isRevokingKeys: boolean,
): Promise<AccessKeyRow[]> {
  const { organizationId } = by
  const member = await lockAndReadMember(tx, by, userId)
  if (member.is_invited) await deleteInvitation(tx, organizationId, userId)
  else {
    await deleteMember(tx, organizationId, userId)
    if (member.role === 'owner') await requireOwner(tx, organizationId)
  }
  const keys = member.is_invited ? [] : await endGrantsOfMember(tx, by, userId, undefined, isRevokingKeys)
  await emitMember(tx, by, 'member.removed', member)
  return keys
}

async function lockAndReadMember(tx: Tx, by: OrganizationRequester, userId: string): Promise<MemberRow> {
  await lockOrganization(tx, by.organizationId)
  return requireFound('member', await findMember(tx, by.organizationId, userId))
}

async function requireOwner(tx: Tx, organizationId: string): Promise<void> {
  if (!(await hasActiveOwner(tx, organizationId)))
    throw new Failure('conflict', 'This is the last owner. Make another member an owner first.')
}

function emitMember(
  tx: Tx,
  by: OrganizationRequester,
  type: EventType,
  member: MemberRow,
  more: Record<string, unknown> = {},
): Promise<void> {
  tx.signal('access')
  const data = { ...memberView(member), ...more }
  return emit(tx, { ...by, type, resourceType: 'user', resourceId: member.user_id, data })
}
