import {
  acceptInvitation,
  changePassword,
  refresh,
  setUpOperator,
  signIn,
  signOut,
} from '../../accounts/sign-in.ts'
import type { Handlers } from '../context.ts'

type TokenRoutes = 'authToken' | 'authRevoke' | 'authPassword' | 'authSetup' | 'authAccept'

export const tokenHandlers: Handlers<TokenRoutes> = {
  authToken: (context) =>
    context.body.grant_type === 'refresh_token'
      ? refresh(context.services, context.body.refresh_token)
      : signIn(context.services, context, context.body),

  async authRevoke(context) {
    await signOut(context.services, context, context.body.refresh_token)
    return {}
  },

  async authPassword(context) {
    const { services, caller, body } = context
    if (caller?.kind !== 'user') throw new Error('only users have passwords')
    await changePassword(services, context, caller, body)
    return {}
  },

  authSetup: (context) => setUpOperator(context.services, context, context.body),

  authAccept: (context) => acceptInvitation(context.services, context, context.body),
}
