import { createInvitation } from '../../accounts/credentials.ts'
import { Failure, invalidField, notFound } from '../../domain/failure.ts'
import { insertMember } from '../../store/identity/members.ts'
import { hasInvitation } from '../../store/identity/one-time-codes.ts'
import { findOrganization } from '../../store/identity/organizations.ts'
import { revokeTokenFamiliesOfUser } from '../../store/identity/tokens.ts'
import { listUsers, makeUserOperator, suspendUser } from '../../store/identity/users.ts'
import { userView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'
import { findOrInviteUser, invitationUrl } from './members.ts'

type UserRoutes = 'adminUserList' | 'adminUserCreate' | 'adminUserUpdate'

export const userHandlers = {
  async adminUserList({ tx, query }) {
    const list = 'admin users'
    const limit = pageLimit(query)
    const rows = await listUsers(tx, readPageToken(list, query.page_token), limit + 1)
    return toPage(list, rows, limit, (row) => row.id, userView)
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
      data: { ...userView(user), ...(role && { role }) },
    })
    tx.signal('access')
    return { ...userView(user), invite_url: inviteUrl }
  },

  async adminUserUpdate({ tx, caller, params, body, audit }) {
    if (body.suspended && caller?.id === params.user_id)
      throw invalidField('suspended', 'you cannot suspend yourself')
    const user = await suspendUser(tx, params.user_id, body.suspended)
    if (!user) throw notFound('user')
    if (body.suspended) await revokeTokenFamiliesOfUser(tx, user.id)
    await audit({
      type: body.suspended ? 'user.suspended' : 'user.restored',
      resourceType: 'user',
      resourceId: user.id,
      data: userView(user),
    })
    tx.signal('access')
    return userView(user)
  },
} satisfies Handlers<UserRoutes>
