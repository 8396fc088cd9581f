import type { Role } from '@slipway/contract'
import { addKey, addOrganization, addProject, ownerToken, tokenOfNew } from '@slipway/testing/people.ts'
import type { TestService } from '@slipway/testing/service.ts'

/** A bearer for every kind of caller that the access rules tell apart. */
export interface Callers {
  expired: string
  revoked: string
  writeKey: string
  readKey: string
  /** Keys of another project of the same organization. */
  siblingKey: string
  operatorKey: string
  /** An operator who is a member of nothing. */
  operator: string
  /** Owner of another organization. */
  stranger: string
  /** A key of a project of that other organization. */
  strangerKey: string
  members: Record<Role, string>
  /** Users of the organization by role. */
  organizationKeys: Record<Role, string>
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
    organizationKeys: {
      viewer: await organizationKey('viewer'),
      member: await organizationKey('member'),
      admin: await organizationKey('admin'),
      owner: await organizationKey('owner'),
    },
  }
}
