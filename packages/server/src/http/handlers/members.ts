import { changeMember, inviteMember, inviteMemberAgain, removeMember } from '../../accounts/members.ts'
import type { Inviter } from '../../store/identity/invitations.ts'
import { listMembers, type MemberRow } from '../../store/identity/members.ts'
import { accessKeyView, memberView } from '../../views/identity.ts'
import { type Context, type Handlers, inviterOf } from '../context.ts'
import { page } from '../pages.ts'
import { sendInvitation } from './users.ts'

export const memberHandlers = {
  memberList(context) {
    const { tx, organizationId } = context
    const read = (before: string | null, limit: number) => {
      const [createdAt, userId] = before?.split(',') ?? []
      const cursor = createdAt && userId ? { createdAt: new Date(createdAt), userId } : null
      return listMembers(tx, organizationId, cursor, limit)
    }
    return page(context, read, memberView, (row) => `${row.created_at.toISOString()},${row.user_id}`)
  },

  async memberCreate(context) {
    const inviter = inviterOf(context, 'owner')
    return sendMemberLink(context, inviter, await inviteMember(context.tx, context.by, inviter, context.body))
  },

  async memberInvite(context) {
    const { tx, by, params } = context
    const inviter = inviterOf(context, 'owner')
    return sendMemberLink(context, inviter, await inviteMemberAgain(tx, by, inviter, params.user_id))
  },

  async memberUpdate({ tx, by, params, query, body }) {
    const isRevokingKeys = query.revoke_keys ?? false
    const { member, keys } = await changeMember(tx, by, params.user_id, body.role, isRevokingKeys)
    return { ...memberView(member), access_keys: keys.map(accessKeyView) }
  },

  async memberDelete({ tx, by, params, query }) {
    const keys = await removeMember(tx, by, params.user_id, query.revoke_keys ?? false)
    return { access_keys: keys.map(accessKeyView) }
  },
} satisfies Partial<Handlers>

const sendMemberLink = async (
  context: Pick<Context, 'services' | 'tx'>,
  inviter: Inviter,
  { member, code }: { member: MemberRow; code: string },
) => ({ ...memberView(member), invite_url: await sendInvitation(context, inviter, member.email, code) })
