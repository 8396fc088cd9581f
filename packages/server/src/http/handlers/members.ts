import { addMember, changeMember, removeMember } from '../../accounts/members.ts'
import { listMembers } from '../../store/identity/members.ts'
import { memberView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { page } from '../pages.ts'
import { invitationUrl } from './users.ts'

export const memberHandlers: Handlers<'memberList' | 'memberCreate' | 'memberUpdate' | 'memberDelete'> = {
  memberList(context) {
    const { tx, organizationId } = context
    const read = (before: string | null, limit: number) => {
      const [createdAt, userId] = before?.split(',') ?? []
      const cursor = createdAt && userId ? { createdAt: new Date(createdAt), userId } : null
      return listMembers(tx, organizationId, cursor, limit)
    }
    return page(context, read, memberView, (row) => `${row.created_at.toISOString()},${row.user_id}`)
  },

  async memberCreate({ services, tx, by, body }) {
    const { member, code } = await addMember(tx, by, body)
    return { ...memberView(member), invite_url: invitationUrl(services, code) }
  },

  memberUpdate: async ({ tx, by, params, body }) =>
    memberView(await changeMember(tx, by, params.user_id, body.role)),

  async memberDelete({ tx, by, params }) {
    await removeMember(tx, by, params.user_id)
    return {}
  },
}
