import { acceptWithNewAccount, joinByInvitation, readInvitation } from '../../accounts/invitations.ts'
import { changePassword, refresh, setUpOperator, signIn, signOut } from '../../accounts/sign-in.ts'
import { Failure, invalidField } from '../../domain/failure.ts'
import { readBearer } from '../access.ts'
import type { Handlers } from '../context.ts'

type TokenRoutes = 'authToken' | 'authRevoke' | 'authPassword' | 'authSetup' | 'authAccept' | 'authInvitation'

export const tokenHandlers: Handlers<TokenRoutes> = {
  authToken: (context) =>
    context.body.grant_type === 'refresh_token'
      ? refresh(context.services, context, context.body.refresh_token)
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

  authInvitation: (context) => readInvitation(context.services, context, context.body.code),

  async authAccept(context) {
    const { services, request, address } = context
    const { code, password, email } = context.body
    if (password !== undefined)
      return acceptWithNewAccount(services, context, { code, password, ...(email && { email }) })
    if (request.headers.authorization === undefined)
      throw invalidField('password', 'is required for a new account; with an account, send its token')
    const caller = await services.access.authenticate(readBearer(request.headers), address)
    if (caller.kind !== 'user')
      throw new Failure('permission_denied', 'Only a signed-in user may accept an invitation.')
    await joinByInvitation(services, context, caller.id, code)
    return {}
  },
}
