import { acceptWithNewAccount, joinByInvitation, readInvitation } from '../../accounts/invitations.ts'
import { changePassword, refresh, setUpOperator, signIn, signOut } from '../../accounts/sign-in.ts'
import { Failure, invalidField } from '../../domain/failure.ts'
import { readBearer } from '../access.ts'
import { emptyResponse, type Handlers, requireUser } from '../context.ts'

export const tokenHandlers = {
  authToken: (context) =>
    context.body.grant_type === 'refresh_token'
      ? refresh(context.services, context, context.body.refresh_token)
      : signIn(context.services, context, context.body),

  authRevoke: (context) => emptyResponse(signOut(context.services, context, context.body.refresh_token)),

  authPassword: (context) =>
    emptyResponse(changePassword(context.services, context, requireUser(context), context.body)),

  authSetup: (context) => setUpOperator(context.services, context, context.body),

  authInvitation: (context) => readInvitation(context.services, context, context.body.code),

  async authAccept(context) {
    const { services, request, address } = context
    const { code, password, email } = context.body
    if (password !== undefined)
      return acceptWithNewAccount(services, context, { code, password, ...(email && { email }) })
    if (request.headers.authorization === undefined)
      throw invalidField(
        'password',
        'is required to create an account; if you already have one, sign in and send its bearer token instead',
      )
    const caller = await services.access.authenticate(readBearer(request.headers), address)
    if (caller.kind !== 'user')
      throw new Failure('permission_denied', 'Only a signed-in user may accept an invitation.')
    return emptyResponse(joinByInvitation(services, context, caller.id, code))
  },
} satisfies Partial<Handlers>
