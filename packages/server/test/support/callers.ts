import type { Role } from '@slipway/contract'
import {
  addKey,
  addOrganization,
  addProject,
  ownerToken,
  someEmail,
  tokenOfNew,
} from '@slipway/testing/people.ts'
import type { TestService } from '@slipway/testing/service.ts'

/** A bearer token for every kind of caller that the access rules distinguish. */
export interface Callers {
  expired: string
  revoked: string
  writeKey: string
  readKey: string
  /** Keys of another project of the same organization. */
  siblingKey: string
  operatorKey: string
  /** An operator without any membership. */
  operator: string
  /** Owner of another organization. */
  stranger: string
  /** A key of a project of that other organization. */
  strangerKey: string
  members: Record<Role, string>
  /** Keys of the organization by role. */
  organizationKeys: Record<Role, string>
  /** Keys that the organization's owner key created, by role. */
  childKeys: Record<Role, string>
  /** A write key of the project that the organization's admin key created. */
  childProjectKey: string
  childOperatorKey: string
  /** A child of a key that was revoked, and of one that has expired. */
  childOfRevoked: string
  childOfExpired: string
  /** The code of an open invitation to become an owner. */
  invitationCode: string
}

export async function makeCallers(service: TestService): Promise<Callers> {
  const { database } = service
  const { organization_id, project_id } = service.credentials
  const owner = await ownerToken(service)
  const roleOf = (role: Role) => tokenOfNew(database, { memberOf: { [organization_id]: role } })
  const members = {
    viewer: await roleOf('viewer'),
    member: await roleOf('member'),
    admin: await roleOf('admin'),
    owner,
  }
  const organizationKey = async (role: Role) =>
    (await service.ok('organizationKeyCreate', { token: owner, body: { name: role, role } })).secret
  const organizationKeys = {
    viewer: await organizationKey('viewer'),
    member: await organizationKey('member'),
    admin: await organizationKey('admin'),
    owner: await organizationKey('owner'),
  }
  const sibling = await addProject(service, owner, organization_id, 'sibling')
  const revoked = await addKey(service, owner, project_id, 'write')
  await service.ok('accessKeyDelete', { token: owner, params: { key_id: revoked.id } })
  const elsewhere = await addOrganization(database, 'elsewhere')
  const stranger = await tokenOfNew(database, { memberOf: { [elsewhere]: 'owner' } })
  const strangerProject = await addProject(service, stranger, elsewhere, 'theirs')

  const expired = await roleOf('viewer')
  await service.sql(
    `UPDATE access_tokens SET expires_at = slipway_now() - interval '1 second'
     WHERE token_hash = sha256($1::text::bytea)`,
    [expired],
  )
  return {
    expired,
    revoked: revoked.secret,
    writeKey: service.credentials.access_key,
    readKey: (await addKey(service, owner, project_id, 'read')).secret,
    siblingKey: (await addKey(service, owner, sibling, 'write')).secret,
    operatorKey: service.credentials.operator_key,
    operator: await tokenOfNew(database, { isOperator: true }),
    stranger,
    strangerKey: (await addKey(service, stranger, strangerProject, 'write')).secret,
    members,
    organizationKeys,
    ...(await makeChildren(service, owner, organizationKeys)),
  }
}

async function makeChildren(service: TestService, owner: string, parents: Record<Role, string>) {
  const { project_id, operator_key } = service.credentials
  const key = (token: string, role: Role, more = {}) =>
    service.ok('organizationKeyCreate', { token, body: { name: role, role, ...more } })
  const childOf = async (role: Role) => (await key(parents.owner, role)).secret
  const revoked = await key(owner, 'owner')
  const childOfRevoked = await key(revoked.secret, 'owner')
  await service.ok('organizationKeyDelete', { token: owner, params: { key_id: revoked.id } })
  const expired = await key(owner, 'owner', { expires_at: new Date(Date.now() + 60_000).toISOString() })
  const childOfExpired = await key(expired.secret, 'owner')
  await service.sql(
    `UPDATE access_keys SET expires_at = slipway_now() - interval '1 second' WHERE id = ANY ($1::uuid[])`,
    [[expired.id, childOfExpired.id]],
  )
  const invited = await service.ok('memberCreate', {
    token: owner,
    body: { email: someEmail('guest'), role: 'owner' },
  })
  return {
    childKeys: {
      viewer: await childOf('viewer'),
      member: await childOf('member'),
      admin: await childOf('admin'),
      owner: await childOf('owner'),
    },
    childProjectKey: (await addKey(service, parents.admin, project_id, 'write')).secret,
    childOperatorKey: (await service.ok('adminKeyCreate', { token: operator_key, body: { name: 'child' } }))
      .secret,
    childOfRevoked: childOfRevoked.secret,
    childOfExpired: childOfExpired.secret,
    invitationCode: invited.invite_url.split('#code=')[1]!,
  }
}
