import { createInvitation } from '../../accounts/credentials.ts'
import { Failure, invalidField, notFound } from '../../domain/failure.ts'
import { insertMember } from '../../store/identity/members.ts'
import { hasInvitation } from '../../store/identity/one-time-codes.ts'
import { findOrganization } from '../../store/identity/organizations.ts'
import { revokeTokenFamiliesOfUser } from '../../store/identity/tokens.ts'
import { listUsers, makeUserOperator, suspendUser, type UserRow } from '../../store/identity/users.ts'
import { time } from '../../store/time.ts'
import type { Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'
import { findOrInviteUser, invitationUrl } from './members.ts'

type UserRoutes = 'adminUserList' | 'adminUserCreate' | 'adminUserUpdate'

export const userHandlers = {
  async adminUserList({ tx, query }) {
    const list = 'admin users'
    const limit = pageLimit(query)
    const rows = await listUsers(tx, readPageToken(list, query.page_token), limit + 1)
    return toPage(list, rows, limit, (row) => row.id, viewUser)
  },

  async adminUserCreate({ services, tx, body, audit }) {
    const { organization_id: organizationId, role } = body
    if (organizationId !== undefined && role === undefined)
      throw invalidField('role', 'is required with organization_id')
    if (organizationId === undefined && role !== undefined)
      throw invalidField('organization_id', 'is required with role')
    if (organizationId !== undefined && !(await findOrganization(tx, organizationId)))
      throw invalidField('organization_id', 'there is no organization with this id')
    const { user: found, isNew } = await findOrInviteUser(tx, body.email)
    const becomesOperator = body.is_operator === true && !found.is_operator
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
    const inviteUrl =
      isLost || (becomesOperator && user.password_hash === null)
        ? invitationUrl(services, await createInvitation(tx, user.id))
        : ''
    await audit({
      type: isNew ? 'user.invited' : 'user.updated',
      resourceType: 'user',
      resourceId: user.id,
      organizationId: organizationId ?? null,
      data: { ...viewUser(user), ...(role && { role }) },
    })
    tx.signal('access')
    return { ...viewUser(user), invite_url: inviteUrl }
  },

  async adminUserUpdate({ services, tx, caller, params, body, audit }) {
    if (body.suspended && caller?.id === params.user_id)
      throw invalidField('suspended', 'you cannot suspend yourself')
    const user = await suspendUser(tx, params.user_id, body.suspended)
    if (!user) throw notFound('user')
    if (body.suspended) await revokeTokenFamiliesOfUser(tx, user.id)
    await audit({
      type: body.suspended ? 'user.suspended' : 'user.restored',
      resourceType: 'user',
      resourceId: user.id,
      data: viewUser(user),
    })
    tx.signal('access')
    return viewUser(user)
  },
} satisfies Handlers<UserRoutes>

const viewUser = (row: UserRow) => ({
  id: row.id,
  email: row.email,
  is_operator: row.is_operator,
  suspended: row.suspended_at !== null,
  state: row.password_hash === null ? ('invited' as const) : ('active' as const),
  created_at: time(row.created_at),
})
