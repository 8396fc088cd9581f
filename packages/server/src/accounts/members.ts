import type { EventType, Role } from '@slipway/contract'
import { Failure, notFound } from '../domain/failure.ts'
import { requireRoom } from '../operations/admission.ts'
import type { Tx } from '../store/database.ts'
import { emit, type Requester } from '../store/events/events.ts'
import {
  deleteMember,
  findMember,
  hasActiveOwner,
  insertMember,
  type MemberRow,
  organizationsOfUser,
  updateMember,
} from '../store/identity/members.ts'
import { voidInvitations } from '../store/identity/one-time-codes.ts'
import { lockOrganization } from '../store/identity/organizations.ts'
import { lockUser } from '../store/identity/users.ts'
import { memberView } from '../views/identity.ts'
import { createInvitation } from './credentials.ts'
import { findOrInviteUser } from './users.ts'

export interface OrganizationRequester extends Requester {
  organizationId: string
}

/** The code is for the invited user; undefined when they need none. */
export async function addMember(
  tx: Tx,
  by: OrganizationRequester,
  { email, role }: { email: string; role: Role },
): Promise<{ member: MemberRow; code: string | undefined }> {
  const { user } = await findOrInviteUser(tx, email)
  const otherIds = await organizationsOfUser(tx, user.id)
  if (!(await insertMember(tx, by.organizationId, user.id, role)))
    throw new Failure('already_exists', 'This user is a member already: change the role instead.')
  await requireRoom(tx, by, 'members')
  // A link lets its holder become the user. Whoever is invited elsewhere too, or as an operator, has one from there;
  // another would open that place to us.
  const mayInvite = user.password_hash === null && !user.is_operator && otherIds.length === 0
  const code = mayInvite ? await createInvitation(tx, user.id) : undefined
  const member = (await findMember(tx, by.organizationId, user.id))!
  await emitMember(tx, by, member.is_invited ? 'member.invited' : 'member.added', member)
  return { member, code }
}

export async function changeMember(
  tx: Tx,
  by: OrganizationRequester,
  userId: string,
  role: Role,
): Promise<MemberRow> {
  const before = await lockedMember(tx, by, userId)
  await updateMember(tx, by.organizationId, userId, role)
  if (before.role === 'owner') await requireOwner(tx, by.organizationId)
  const member = { ...before, role }
  await emitMember(tx, by, 'member.updated', member, { previous_role: before.role })
  return member
}

export async function removeMember(tx: Tx, by: OrganizationRequester, userId: string): Promise<void> {
  const member = await lockedMember(tx, by, userId)
  await deleteMember(tx, by.organizationId, userId)
  if (member.role === 'owner') await requireOwner(tx, by.organizationId)
  await forgetInvitation(tx, userId)
  await emitMember(tx, by, 'member.removed', member)
}

async function lockedMember(tx: Tx, by: OrganizationRequester, userId: string): Promise<MemberRow> {
  await lockOrganization(tx, by.organizationId)
  const member = await findMember(tx, by.organizationId, userId)
  if (!member) throw notFound('member')
  return member
}

async function requireOwner(tx: Tx, organizationId: string): Promise<void> {
  if (!(await hasActiveOwner(tx, organizationId)))
    throw new Failure('conflict', 'The last owner must stay one: make someone else an owner first.')
}

/** An invitation to nothing must not leave a way in. */
async function forgetInvitation(tx: Tx, userId: string): Promise<void> {
  const user = await lockUser(tx, userId)
  if (user?.password_hash !== null || user.is_operator) return
  if ((await organizationsOfUser(tx, userId)).length === 0) await voidInvitations(tx, userId)
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
