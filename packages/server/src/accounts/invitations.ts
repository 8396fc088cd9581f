import type { Invitation, Role, TokenResponse } from '@slipway/contract'
import { normalizeEmail } from '../domain/email.ts'
import { Failure, invalidField } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { hashNewPassword, refuseCommonPassword } from '../domain/password.ts'
import { hashSecret, newToken } from '../domain/secret.ts'
import type { Tx } from '../postgres/database.ts'
import { time } from '../postgres/time.ts'
import type { Services } from '../services.ts'
import { emit, type Requester } from '../store/events/events.ts'
import {
  dropInvitationsOfKeys,
  dropInvitationsOfUser,
  findInvitations,
  type InvitationRow,
  type Inviter,
  putInvitation,
  takeInvitations,
} from '../store/identity/invitations.ts'
import { insertMember } from '../store/identity/members.ts'
import { findUserByEmail, insertUser, makeUserOperator } from '../store/identity/users.ts'
import { memberView, userView } from '../views/identity.ts'
import { requireCode, runCountedAttempt } from './passwords.ts'
import { sessionOf, startSession } from './sessions.ts'
import { badCode, emitUser, invalidGrant, type Visitor } from './visitor.ts'

const invitationSeconds = 7 * 24 * 3600

/** What an invitation offers. With neither a role nor operator rights, it only allows creating an account. */
export interface Offer {
  organizationId: string | null
  role: Role | null
  isOperator: boolean
}

/** Creates one link for all offers. Earlier links with the same offer to this address stop working. */
export async function invite(
  tx: Tx,
  email: string,
  offers: Offer[],
  inviter: Inviter,
): Promise<{ invitations: InvitationRow[]; code: string }> {
  const code = newToken('code')
  const codeHash = hashSecret(code)
  const invitations = []
  for (const offer of offers)
    invitations.push(
      await putInvitation(tx, {
        ...offer,
        ...inviter,
        id: uuid(),
        email,
        codeHash,
        seconds: invitationSeconds,
      }),
    )
  return { invitations, code }
}

/** Ends open invitations that the user no longer has the right to make. Must be called whenever a user loses a right. */
export const endInvitationsOfUser = async (tx: Tx, by: Requester, userId: string): Promise<void> =>
  emitEnded(tx, by, await dropInvitationsOfUser(tx, userId))

export const endInvitationsOfKeys = async (tx: Tx, by: Requester, keyIds: string[]): Promise<void> =>
  emitEnded(tx, by, await dropInvitationsOfKeys(tx, keyIds))

async function emitEnded(tx: Tx, by: Requester, invitations: InvitationRow[]): Promise<void> {
  const reason = 'The inviter can no longer make this invitation.'
  for (const { role, ...row } of invitations) {
    if (!role && !row.is_operator) continue
    const person = { ...row, user_id: row.id, suspended_at: null, is_invited: true }
    await emit(tx, {
      ...by,
      type: role ? 'member.removed' : 'user.operator_removed',
      resourceType: 'user',
      resourceId: row.id,
      organizationId: row.organization_id,
      data: { ...(role ? memberView({ ...person, role }) : userView(person)), reason },
    })
  }
}

export function requireEmail(given: string, field = 'email'): string {
  const email = normalizeEmail(given)
  if (email === null) throw invalidField(field, 'is not an e-mail address')
  return email
}

const requireInvitations = (services: Services, visitor: Pick<Visitor, 'address'>, code: string) =>
  requireCode(services, visitor, async () => {
    const all = await findInvitations(services.database, hashSecret(code))
    return all[0] && { all, first: all[0] }
  })

export async function readInvitation(
  services: Services,
  visitor: Pick<Visitor, 'address'>,
  code: string,
): Promise<Invitation> {
  const { all, first } = await requireInvitations(services, visitor, code)
  return {
    organization_name: first.organization_name ?? '',
    role: first.role ?? '',
    is_operator: all.some(({ is_operator }) => is_operator),
    email: first.email,
    invited_by: first.invited_by,
    expires_at: time(first.expires_at),
  }
}

/** Accepts the invitation for a signed-in user. */
export async function joinByInvitation(
  services: Services,
  visitor: Visitor,
  userId: string,
  code: string,
): Promise<void> {
  await requireInvitations(services, visitor, code)
  await services.database.transaction((tx) => redeem(tx, visitor, userId, code))
}

/** Creates an account and accepts the invitation for it. The owner of an existing account must sign in and join instead. */
export async function acceptWithNewAccount(
  services: Services,
  visitor: Visitor,
  given: { code: string; password: string; email?: string },
): Promise<TokenResponse> {
  const { database } = services
  const { first: invitation } = await requireInvitations(services, visitor, given.code)
  const email = given.email === undefined ? invitation.email : requireEmail(given.email)
  refuseCommonPassword(given.password)
  return runCountedAttempt(services, { email, address: visitor.address }, async () => {
    if (await findUserByEmail(database, email)) throw accountExistsFailure(email === invitation.email)
    const passwordHash = await hashNewPassword(given.password)
    return database.transaction(async (tx) => {
      const user = await insertUser(tx, { id: uuid(), email, passwordHash, isOperator: false })
      if (!user) throw accountExistsFailure(email === invitation.email)
      await redeem(tx, visitor, user.id, given.code)
      return startSession(tx, user.id, sessionOf(services), visitor)
    })
  })
}

/** Only the message for the invited address says that an account exists: the holder of a link can try any address. */
const accountExistsFailure = (isInvited: boolean) =>
  isInvited
    ? new Failure(
        'already_exists',
        'This address already has an account. Sign in, then open the invitation again.',
      )
    : invalidGrant(
        'No account can be created with this address. Use the invited one, or sign in and open the invitation again.',
      )

async function redeem(tx: Tx, visitor: Visitor, userId: string, code: string): Promise<void> {
  const invitations = await takeInvitations(tx, hashSecret(code))
  if (invitations.length === 0) throw badCode()
  for (const { organization_id: organizationId, role, is_operator, email } of invitations) {
    if (organizationId && role && !(await insertMember(tx, organizationId, userId, role)))
      throw new Failure('already_exists', 'This account is already a member of the organization.')
    if (is_operator) await makeUserOperator(tx, userId)
    const type = is_operator ? 'user.operator_granted' : 'member.accepted'
    await emitUser(tx, visitor, type, userId, { organizationId, data: { email, ...(role && { role }) } })
  }
  tx.signal('access')
}
