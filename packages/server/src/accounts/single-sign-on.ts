import { type Role, roles, type TokenResponse } from '@slipway/contract'
import type { OidcConfig } from '../config/index.ts'
import { normalizeEmail } from '../domain/email.ts'
import { Failure, notFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { sealSecret } from '../domain/secret-key.ts'
import { TryAgain, type Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import {
  deleteIdentities,
  findIdentity,
  findOrganizationNamed,
  insertIdentity,
  listIdentities,
  listMembershipsOf,
  putClaimedMembership,
  setEmailFromProvider,
} from '../store/identity/identities.ts'
import { deleteMember } from '../store/identity/members.ts'
import { lockOrganization } from '../store/identity/organizations.ts'
import { insertUser, lockUser } from '../store/identity/users.ts'
import { endGrantsOfMember } from './lost-roles.ts'
import type { OidcIdentity } from './oidc-client.ts'
import { sessionOf, startSession } from './sessions.ts'
import { emitUser, invalidGrant, type Visitor } from './visitor.ts'

/** If the operator has configured domains, the provider must have verified the address. */
export function requireAllowedDomain(provider: OidcConfig, identity: OidcIdentity): void {
  if (provider.allowedDomains.length === 0) return
  const domain = identity.email.split('@').at(-1) ?? ''
  if (!identity.isEmailVerified || !provider.allowedDomains.includes(domain))
    throw invalidGrant('This address is not verified, or its domain is not allowed to sign in.')
}

/**
 * Signs in to the account that the identity is linked to, or to a new account. A matching e-mail address
 * proves nothing, so it never links an identity to an account.
 */
export async function signInByIdentity(
  services: Services,
  visitor: Visitor,
  provider: OidcConfig,
  identity: OidcIdentity,
): Promise<TokenResponse> {
  requireAllowedDomain(provider, identity)
  const { hasSecondFactor, tokens } = identity
  const session = {
    maxAgeS: Math.min(sessionOf(services).maxAgeS, maxAgeOf(provider)),
    hasSecondFactor,
    oidcProvider: provider.name,
    // If roles do not come from claims, the provider does not have to be queried later.
    oidcSealed: provider.organization ? sealSecret(services.secretKey, JSON.stringify(tokens)) : null,
  }
  return services.database.transaction(async (tx) => {
    const userId = await findOrCreateUser(tx, visitor, identity)
    await applyRoleClaims(tx, services, visitor, provider, userId, identity)
    await emitUser(tx, visitor, 'user.signed_in', userId, { data: { provider: provider.name } })
    return startSession(tx, userId, session, visitor)
  })
}

const maxAgeOf = ({ maxAgeHours }: OidcConfig): number => maxAgeHours * 3600

/** Gives the user the role of these claims in the provider's organization; ends the membership if they contain no role. */
export async function applyRoleClaims(
  tx: Tx,
  { log }: Services,
  visitor: Visitor,
  provider: OidcConfig,
  userId: string,
  { issuer, roleClaims }: Pick<OidcIdentity, 'issuer' | 'roleClaims'>,
): Promise<void> {
  await lockActiveUser(tx, userId)
  const { name, organization } = provider
  const organizationId = organization && (await findOrganizationNamed(tx, organization))
  if (organization && !organizationId)
    log.warn(
      { provider: name },
      'single sign-on: the configured organization does not exist or is not unique',
    )
  const role = roleOf(provider, roleClaims)
  const claimed = organizationId && role ? { organizationId, role, seconds: maxAgeOf(provider) } : null
  await applyClaims(tx, visitor, userId, issuer, claimed)
}

/** Links an identity to a signed-in user, who has just signed in to the provider. */
export async function linkIdentity(
  { database }: Services,
  visitor: Visitor,
  provider: OidcConfig,
  userId: string,
  identity: OidcIdentity,
): Promise<void> {
  requireAllowedDomain(provider, identity)
  await database.transaction(async (tx) => {
    await lockActiveUser(tx, userId)
    if (!(await insertIdentity(tx, identity.issuer, identity.subject, userId)))
      throw new Failure('already_exists', 'This identity is already linked to an account.')
    await emitUser(tx, visitor, 'user.identity_linked', userId, { data: { provider: provider.name } })
  })
}

/** Also ends memberships that come from the issuer's claims. Refused if the user could no longer sign in. */
export async function unlinkIdentity(
  { database }: Services,
  visitor: Visitor,
  provider: OidcConfig,
  userId: string,
): Promise<void> {
  await database.transaction(async (tx) => {
    const user = await lockUser(tx, userId)
    const identities = await listIdentities(tx, userId)
    if (!identities.some(({ issuer }) => issuer === provider.issuer)) throw notFound('identity')
    if (!user?.password_hash && identities.every(({ issuer }) => issuer === provider.issuer))
      throw new Failure(
        'conflict',
        'This is the only way to sign in to this account. Link another identity first.',
      )
    await deleteIdentities(tx, provider.issuer, userId)
    await applyClaims(tx, visitor, userId, provider.issuer, null)
    await emitUser(tx, visitor, 'user.identity_unlinked', userId, { data: { provider: provider.name } })
    tx.signal('access')
  })
}

async function findOrCreateUser(tx: Tx, visitor: Visitor, identity: OidcIdentity): Promise<string> {
  const { issuer, subject } = identity
  const email = normalizeEmail(identity.email) ?? ''
  const known = await findIdentity(tx, issuer, subject)
  if (known) {
    await setEmailFromProvider(tx, known.user_id, email)
    return known.user_id
  }
  const user = (await insertUser(tx, { id: uuid(), email, passwordHash: null, isOperator: false }))!
  if (!(await insertIdentity(tx, issuer, subject, user.id)))
    throw new TryAgain('the subject was linked concurrently')
  await emitUser(tx, visitor, 'user.created', user.id, { data: { email, issuer } })
  return user.id
}

async function lockActiveUser(tx: Tx, userId: string): Promise<void> {
  const user = await lockUser(tx, userId)
  if (!user || user.suspended_at) throw invalidGrant('This account cannot sign in. Contact an operator.')
}

/** Returns the highest role in the claims. */
function roleOf(provider: OidcConfig, roleClaims: string[]): Role | undefined {
  const given = roleClaims.map((claim) =>
    Object.hasOwn(provider.roles, claim) ? provider.roles[claim] : undefined,
  )
  return roles.findLast((role) => given.includes(role))
}

/** Applies the role of this issuer's claims. Memberships from invitations do not change. */
async function applyClaims(
  tx: Tx,
  visitor: Visitor,
  userId: string,
  issuer: string,
  claimed: { organizationId: string; role: Role; seconds: number } | null,
): Promise<void> {
  const by = {
    actor: `user:${userId}`,
    requestId: visitor.requestId,
    clientAddress: visitor.address,
    projectId: null,
  }
  const memberships = await listMembershipsOf(tx, userId)
  for (const before of memberships.filter(({ oidc_issuer }) => oidc_issuer === issuer)) {
    const kept = before.organization_id === claimed?.organizationId ? claimed : undefined
    const newRole = kept?.role
    if (newRole !== before.role) await lockOrganization(tx, before.organization_id)
    if (kept) await putClaimedMembership(tx, { ...kept, userId, issuer })
    else await deleteMember(tx, before.organization_id, userId)
    tx.signal('access')
    if (newRole === before.role) continue
    await endGrantsOfMember(tx, { ...by, organizationId: before.organization_id }, userId, newRole, false)
    const data = { role: newRole ?? before.role, previous_role: before.role, issuer }
    const type = newRole ? 'member.updated' : 'member.removed'
    await emitUser(tx, visitor, type, userId, { organizationId: before.organization_id, data })
  }
  if (!claimed || memberships.some(({ organization_id }) => organization_id === claimed.organizationId))
    return
  const { organizationId, role } = claimed
  await putClaimedMembership(tx, { ...claimed, userId, issuer })
  await emitUser(tx, visitor, 'member.accepted', userId, { organizationId, data: { role, issuer } })
  tx.signal('access')
}
