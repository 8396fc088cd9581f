import { createInvitation } from '../../accounts/credentials.ts'
import { Failure, invalidField, notFound } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { normaliseEmail } from '../../domain/names.ts'
import type { Services } from '../../services.ts'
import type { Tx } from '../../store/database.ts'
import {
  deleteMember,
  findMember,
  hasActiveOwner,
  insertMember,
  listMembers,
  organizationsOfUser,
  updateMember,
} from '../../store/identity/members.ts'
import { voidInvitations } from '../../store/identity/one-time-codes.ts'
import { lockOrganization } from '../../store/identity/organizations.ts'
import { findUserByEmail, insertUser, lockUser, type UserRow } from '../../store/identity/users.ts'
import { memberView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

type MemberRoutes = 'memberList' | 'memberCreate' | 'memberUpdate' | 'memberDelete'

export const memberHandlers = {
  async memberList({ tx, organizationId, query }) {
    const list = `members ${organizationId}`
    const [createdAt, userId] = readPageToken(list, query.page_token)?.split(',') ?? []
    const before = createdAt && userId ? { createdAt: new Date(createdAt), userId } : null
    const limit = pageLimit(query)
    const rows = await listMembers(tx, organizationId, before, limit + 1)
    return toPage(list, rows, limit, (row) => `${row.created_at.toISOString()},${row.user_id}`, memberView)
  },

  async memberCreate({ services, tx, organizationId, body, audit }) {
    const { user } = await findOrInviteUser(tx, body.email)
    const otherIds = await organizationsOfUser(tx, user.id)
    if (!(await insertMember(tx, organizationId, user.id, body.role)))
      throw new Failure('already_exists', 'This user is a member already: change the role instead.')
    // A link lets its holder become the user. Whoever is invited elsewhere too, or as an operator, has one from there;
    // another would open that place to us.
    const mayInvite = user.password_hash === null && !user.is_operator && otherIds.length === 0
    const inviteUrl = mayInvite ? invitationUrl(services, await createInvitation(tx, user.id)) : ''
    const member = memberView((await findMember(tx, organizationId, user.id))!)
    await audit({
      type: member.state === 'invited' ? 'member.invited' : 'member.added',
      resourceType: 'user',
      resourceId: user.id,
      data: member,
    })
    tx.signal('access')
    return { ...member, invite_url: inviteUrl }
  },

  async memberUpdate({ tx, organizationId, params, body, audit }) {
    await lockOrganization(tx, organizationId)
    const before = await findMember(tx, organizationId, params.user_id)
    if (!before) throw notFound('member')
    await updateMember(tx, organizationId, params.user_id, body.role)
    if (before.role === 'owner') await requireOwner(tx, organizationId)
    const member = memberView({ ...before, role: body.role })
    await audit({
      type: 'member.updated',
      resourceType: 'user',
      resourceId: member.user_id,
      data: { ...member, previous_role: before.role },
    })
    tx.signal('access')
    return member
  },

  async memberDelete({ tx, organizationId, params, audit }) {
    await lockOrganization(tx, organizationId)
    const member = await findMember(tx, organizationId, params.user_id)
    if (!member) throw notFound('member')
    await deleteMember(tx, organizationId, params.user_id)
    if (member.role === 'owner') await requireOwner(tx, organizationId)
    await forgetInvitation(tx, params.user_id)
    await audit({
      type: 'member.removed',
      resourceType: 'user',
      resourceId: member.user_id,
      data: memberView(member),
    })
    tx.signal('access')
    return {}
  },
} satisfies Handlers<MemberRoutes>

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

/** Where the console takes the code and a password. */
export const invitationUrl = (services: Services, code: string): string =>
  `${services.publicUrl()}/accept?code=${code}`

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
