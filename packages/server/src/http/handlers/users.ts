import { addUser, setUserSuspended } from '../../accounts/users.ts'
import type { Services } from '../../services.ts'
import { listUsers } from '../../store/identity/users.ts'
import { userView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { pageById } from '../pages.ts'

export const userHandlers: Handlers<'adminUserList' | 'adminUserCreate' | 'adminUserUpdate'> = {
  adminUserList: (context) =>
    pageById(context, (before, limit) => listUsers(context.tx, before, limit), userView),

  async adminUserCreate({ services, tx, by, body }) {
    const { user, code } = await addUser(tx, by, body)
    return { ...userView(user), invite_url: invitationUrl(services, code) }
  },

  adminUserUpdate: async ({ tx, by, params, body }) =>
    userView(await setUserSuspended(tx, by, params.user_id, body.suspended)),
}

/** Where the console takes the code and a password; empty without a code. */
export const invitationUrl = (services: Services, code: string | undefined): string =>
  code === undefined ? '' : `${services.publicUrl()}/accept?code=${code}`
