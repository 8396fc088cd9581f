import { createResetCodeForUser, resetUrl } from '../../accounts/reset.ts'
import { removeSecondFactorOf } from '../../accounts/second-factor.ts'
import { inviteUser, removeOperatorRights, setUserSuspended } from '../../accounts/users.ts'
import { Failure, requireFound } from '../../domain/failure.ts'
import { queueMail } from '../../mail/queue.ts'
import { time } from '../../postgres/time.ts'
import type { Inviter } from '../../store/identity/invitations.ts'
import { findUserAccount, listUsers, listUsersOfOrganization } from '../../store/identity/users.ts'
import { userDetailsView, userView } from '../../views/identity.ts'
import { type Context, emptyResponse, type Handlers, inviterOf } from '../context.ts'
import { pageById } from '../pages.ts'

export const userHandlers = {
  adminUserList(context) {
    const { tx, query } = context
    const { organization_id } = query
    return pageById(
      context,
      (...page) =>
        organization_id ? listUsersOfOrganization(tx, organization_id, ...page) : listUsers(tx, ...page),
      (row) => ({ ...userView(row), ...(row.role && { role: row.role }) }),
    )
  },

  async adminUserCreate(context) {
    const { tx, by, body } = context
    const inviter = inviterOf(context, 'operator')
    const { user, code } = await inviteUser(tx, by, inviter, body)
    return { ...userView(user), invite_url: await sendInvitation(context, inviter, user.email, code) }
  },

  adminUserGet: async ({ tx, params }) =>
    userDetailsView(requireFound('user', await findUserAccount(tx, params.user_id))),

  async adminUserUpdate({ tx, by, params, body: { suspended, is_operator } }) {
    if (suspended === undefined && is_operator === undefined)
      throw new Failure('invalid_argument', 'Send at least one field to change: suspended or is_operator.')
    const demoted = is_operator === false && (await removeOperatorRights(tx, by, params.user_id))
    const changed = suspended !== undefined && (await setUserSuspended(tx, by, params.user_id, suspended))
    return userView((changed || demoted) as Exclude<typeof changed | typeof demoted, false>)
  },

  async adminUserReset({ services, tx, by, params }) {
    const { code, expiresAt } = await createResetCodeForUser(tx, by, params.user_id)
    return { reset_url: resetUrl(services, code), expires_at: time(expiresAt) }
  },

  adminUserTotpDelete: ({ tx, by, params }) => emptyResponse(removeSecondFactorOf(tx, by, params.user_id)),
} satisfies Partial<Handlers>

/**
 * Returns the link, and mails it if mail is configured. Browsers do not send what follows `#`, so no log
 * contains the code.
 */
export async function sendInvitation(
  { services, tx }: Pick<Context, 'services' | 'tx'>,
  { invitedBy }: Inviter,
  email: string,
  code: string,
): Promise<string> {
  const url = `${services.publicUrl()}/accept#code=${code}`
  await queueMail(services, tx, {
    to: email,
    subject: 'You are invited to Slipway',
    text: `${invitedBy} invites you to Slipway. Open this link to see the invitation and accept it:\n\n${url}\n\nThe link works once and expires in seven days.`,
  })
  return url
}
