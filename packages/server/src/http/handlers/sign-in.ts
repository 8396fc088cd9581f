import { forgotPassword, resetPassword } from '../../accounts/reset.ts'
import { confirmSecondFactor, removeSecondFactor, setUpTotp } from '../../accounts/second-factor.ts'
import { endOtherSessions, endOwnSession } from '../../accounts/sign-in.ts'
import { unlinkIdentity } from '../../accounts/single-sign-on.ts'
import { requireFound } from '../../domain/failure.ts'
import { listIdentities } from '../../store/identity/identities.ts'
import { listSessions } from '../../store/identity/sessions.ts'
import { identityView, sessionView } from '../../views/identity.ts'
import { emptyResponse, type Handlers, requireUser } from '../context.ts'
import { beginFlow, findProvider } from '../oidc.ts'

export const signInHandlers = {
  authReset: (context) => emptyResponse(resetPassword(context.services, context, context.body)),

  authForgot: (context) => emptyResponse(forgotPassword(context.services, context, context.body.email)),

  async authTotpCreate(context) {
    const { services, body } = context
    return { otpauth_uri: await setUpTotp(services, context, requireUser(context), body.current_password) }
  },

  async authTotpConfirm(context) {
    const { services, body } = context
    return { recovery_codes: await confirmSecondFactor(services, context, requireUser(context), body.code) }
  },

  authTotpRemove: (context) =>
    emptyResponse(removeSecondFactor(context.services, context, requireUser(context), context.body.code)),

  authOidcList: async ({ services: { config } }) => ({
    items: config.oidc.map(({ name }) => ({ name })),
    sends_mail: config.mail !== null,
  }),

  authOidcLink: async (context) => ({
    url: await beginFlow(context.services, context.reply, context.params.provider, requireUser(context).id),
  }),

  async authOidcUnlink(context) {
    const provider = findProvider(context.services, context.params.provider)
    return emptyResponse(unlinkIdentity(context.services, context, provider, requireUser(context).id))
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
    const sessions = await listSessions(context.tx, id)
    const found = sessions.find((row) => row.id === context.params.session_id)
    return sessionView(requireFound('session', found), familyId)
  },

  async authSessionDelete(context) {
    const { services, params } = context
    return emptyResponse(endOwnSession(services, context, requireUser(context), params.session_id))
  },

  authSessionDeleteAll: (context) =>
    emptyResponse(endOtherSessions(context.services, context, requireUser(context))),
} satisfies Partial<Handlers>
