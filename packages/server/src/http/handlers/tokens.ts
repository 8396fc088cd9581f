import { refreshSession, startSession } from '../../accounts/sessions.ts'
import { invalidField } from '../../domain/failure.ts'
import { uuid } from '../../domain/ids.ts'
import { normaliseEmail } from '../../domain/names.ts'
import { hashPassword } from '../../domain/password.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Tx } from '../../store/database.ts'
import { emit, type NewEvent } from '../../store/events/events.ts'
import { organizationsOfUser } from '../../store/identity/members.ts'
import { findOneTimeCode, redeemOneTimeCode } from '../../store/identity/one-time-codes.ts'
import { revokeTokenFamiliesOfUser, revokeTokenFamilyOf } from '../../store/identity/tokens.ts'
import { holdUser, insertUser, lockUser, setUserPassword } from '../../store/identity/users.ts'
import type { Context, Handlers } from '../context.ts'
import { invalidGrant, requirePassword } from '../sign-in.ts'

type TokenRoutes = 'authToken' | 'authRevoke' | 'authPassword' | 'authSetup' | 'authAccept'

export const tokenHandlers = {
  async authToken(context) {
    const { services, body, address } = context
    if (body.grant_type === 'refresh_token') {
      const outcome = await services.database.transaction((tx) => refreshSession(tx, body.refresh_token))
      if (outcome === 'refused' || outcome === 'reused')
        throw invalidGrant('The refresh token is unknown, used or expired: sign in again.')
      return outcome
    }
    const user = await requirePassword(services, { ...body, address })
    return services.database.transaction(async (tx) => {
      // The password may have been changed, or the user suspended, while it was being checked.
      const current = await holdUser(tx, user.id)
      if (!current || current.suspended_at || current.password_hash !== user.password_hash)
        throw invalidGrant('The e-mail or the password is wrong.')
      await record(context, tx, { type: 'user.signed_in', userId: user.id })
      return startSession(tx, user.id)
    })
  },

  // An unknown token is no error: what the caller wants is so.
  async authRevoke(context) {
    const { services, body } = context
    await services.database.transaction(async (tx) => {
      const revoked = await revokeTokenFamilyOf(tx, hashSecret(body.refresh_token))
      if (!revoked) return
      await record(context, tx, { type: 'user.signed_out', userId: revoked.user_id })
      tx.signal('access')
    })
    return {}
  },

  async authPassword(context) {
    const { services, caller, body, address } = context
    if (caller?.kind !== 'user') throw new Error('only users have passwords')
    const attempt = { email: caller.email, password: body.current_password, address }
    const user = await requirePassword(services, attempt)
    const passwordHash = await hashPassword(body.new_password)
    await services.database.transaction(async (tx) => {
      const current = await lockUser(tx, user.id)
      if (current?.password_hash !== user.password_hash)
        throw invalidGrant('The password has just been changed elsewhere.')
      await setUserPassword(tx, user.id, passwordHash)
      await revokeTokenFamiliesOfUser(tx, user.id, caller.familyId)
      await record(context, tx, { type: 'user.password_changed', userId: user.id })
      tx.signal('access')
    })
    return {}
  },

  async authSetup(context) {
    const { services, body } = context
    const email = normaliseEmail(body.email)
    const codeHash = hashSecret(body.code)
    // Before the costly hash; that a code works once is decided in the transaction.
    if (!(await findOneTimeCode(services.database, codeHash, 'setup'))) throw badCode()
    if (email === null) throw invalidField('email', 'is not an e-mail address')
    const passwordHash = await hashPassword(body.password)
    return services.database.transaction(async (tx) => {
      if (!(await redeemOneTimeCode(tx, codeHash, 'setup'))) throw badCode()
      const user = await insertUser(tx, { id: uuid(), email, passwordHash, isOperator: true })
      if (!user) throw invalidField('email', 'belongs to a user already')
      await record(context, tx, { type: 'user.setup', userId: user.id })
      return startSession(tx, user.id)
    })
  },

  async authAccept(context) {
    const { services, body } = context
    const codeHash = hashSecret(body.code)
    if (!(await findOneTimeCode(services.database, codeHash, 'invite'))) throw badCode()
    const passwordHash = await hashPassword(body.password)
    return services.database.transaction(async (tx) => {
      const code = await redeemOneTimeCode(tx, codeHash, 'invite')
      const user = code?.user_id ? await lockUser(tx, code.user_id) : undefined
      if (!user || user.suspended_at || user.password_hash !== null) throw badCode()
      await setUserPassword(tx, user.id, passwordHash)
      const organizationIds = await organizationsOfUser(tx, user.id)
      for (const organizationId of organizationIds.length > 0 ? organizationIds : [null])
        await record(context, tx, { type: 'member.accepted', userId: user.id, organizationId })
      tx.signal('access')
      return startSession(tx, user.id)
    })
  },
} satisfies Handlers<TokenRoutes>

const badCode = () => invalidGrant('The code is unknown, used or expired.')

/** These routes have no caller yet, so the user they are about is the actor. */
function record(
  { requestId }: Context<TokenRoutes>,
  tx: Tx,
  event: Pick<NewEvent, 'type' | 'organizationId'> & { userId: string },
) {
  const { userId, ...rest } = event
  return emit(tx, {
    ...rest,
    resourceType: 'user',
    resourceId: userId,
    actor: `user:${userId}`,
    requestId,
  })
}
