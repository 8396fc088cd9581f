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
    const { member, code } = await inviteMember(tx, by, inviterOf(context), body)
    return { ...memberView(member), invite_url: await sendInvitation(context, member.email, code) }
  },

  async memberInvite(context) {
    const { tx, by, params } = context
    const { member, code } = await inviteMemberAgain(tx, by, inviterOf(context), params.user_id)
    return { ...memberView(member), invite_url: await sendInvitation(context, member.email, code) }
  },

  memberUpdate: async ({ tx, by, params, body }) =>
    memberView(await changeMember(tx, by, params.user_id, body.role)),

  async memberDelete({ tx, by, params, query }) {
    const left = await removeMember(tx, by, params.user_id, query.revoke_keys ?? false)
    return { access_keys: left.map(accessKeyView) }
  },
}
