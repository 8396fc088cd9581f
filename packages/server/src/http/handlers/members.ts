import { changeMember, inviteMember, inviteMemberAgain, removeMember } from '../../accounts/members.ts'
import { listMembers } from '../../store/identity/members.ts'
import { accessKeyView, memberView } from '../../views/identity.ts'
import { type Handlers, inviterOf } from '../context.ts'
import { page } from '../pages.ts'
import { sendInvitation } from './users.ts'

type MemberRoutes = 'memberList' | 'memberCreate' | 'memberInvite' | 'memberUpdate' | 'memberDelete'

export const memberHandlers: Handlers<MemberRoutes> = {
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
    const { tx, by, body } = context
    const inviter = inviterOf(context, 'owner')
    const { member, code } = await inviteMember(tx, by, inviter, body)
    return { ...memberView(member), invite_url: await sendInvitation(context, inviter, member.email, code) }
  },

  async memberInvite(context) {
    const { tx, by, params } = context
    const inviter = inviterOf(context, 'owner')
    const { member, code } = await inviteMemberAgain(tx, by, inviter, params.user_id)
    return { ...memberView(member), invite_url: await sendInvitation(context, inviter, member.email, code) }
  },

  memberUpdate: async ({ tx, by, params, body }) =>
    memberView(await changeMember(tx, by, params.user_id, body.role)),

  async memberDelete({ tx, by, params, query }) {
    const left = await removeMember(tx, by, params.user_id, query.revoke_keys ?? false)
    return { access_keys: left.map(accessKeyView) }
  },
}
