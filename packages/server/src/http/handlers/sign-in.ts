import type { signInRoutes } from '@slipway/contract'
import { forgotPassword, resetPassword } from '../../accounts/reset.ts'
import { confirmSecondFactor, removeSecondFactor, setUpTotp } from '../../accounts/second-factor.ts'
import { endOtherSessions, endOwnSession } from '../../accounts/sign-in.ts'
import { unlinkIdentity } from '../../accounts/single-sign-on.ts'
import { notFound } from '../../domain/failure.ts'
import { listIdentities } from '../../store/identity/identities.ts'
import { listSessions } from '../../store/identity/sessions.ts'
import { identityView, sessionView } from '../../views/identity.ts'
import { type Handlers, requireUser } from '../context.ts'
import { beginFlow } from '../oidc.ts'

export const signInHandlers: Handlers<keyof typeof signInRoutes> = {
  async authReset(context) {
    await resetPassword(context.services, context, context.body)
    return {}
  },

  async authForgot(context) {
    await forgotPassword(context.services, context, context.body.email)
    return {}
  },

  authTotpCreate: async (context) => ({
    otpauth_uri: await setUpTotp(
      context.services,
      context,
      requireUser(context),
      context.body.current_password,
    ),
  }),

  authTotpConfirm: async (context) => ({
    recovery_codes: await confirmSecondFactor(
      context.services,
      context,
      requireUser(context),
      context.body.code,
    ),
  }),

  async authTotpRemove(context) {
    await removeSecondFactor(context.services, context, requireUser(context), context.body.code)
    return {}
  },

  authOidcList: async ({ services }) => ({ items: services.config.oidc.map(({ name }) => ({ name })) }),

  authOidcLink: async (context) => ({
    url: await beginFlow(context.services, context.reply, context.params.provider, requireUser(context).id),
  }),

  async authOidcUnlink(context) {
    const { services, params } = context
    const provider = services.config.oidc.find(({ name }) => name === params.provider)
    if (!provider) throw notFound('provider')
    await unlinkIdentity(services, context, provider, requireUser(context).id)
    return {}
  },

  async authIdentityList(context) {
    const { services, tx } = context
    const rows = await listIdentities(tx, requireUser(context).id)
    return { items: rows.map((row) => identityView(row, services.config.oidc)) }
  },

  async authSessionList(context) {
    const { id, familyId } = requireUser(context)
    return { items: (await listSessions(context.tx, id)).map((row) => sessionView(row, familyId)) }
  },

  async authSessionGet(context) {
    const { id, familyId } = requireUser(context)
    const found = (await listSessions(context.tx, id)).find((row) => row.id === context.params.session_id)
    if (!found) throw notFound('session')
    return sessionView(found, familyId)
  },

  async authSessionDelete(context) {
    await endOwnSession(context.services, context, requireUser(context), context.params.session_id)
    return {}
  },

  async authSessionDeleteAll(context) {
    await endOtherSessions(context.services, context, requireUser(context))
    return {}
  },
}
