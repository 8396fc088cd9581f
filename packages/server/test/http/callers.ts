import type { Role } from '@slipway/contract'
import type { TestService } from '../harness.ts'

/** A bearer for every kind of caller that the access rules tell apart. */
export interface Callers {
  expired: string
  revoked: string
  writeKey: string
  readKey: string
  /** Of another project of the same organization. */
  siblingKey: string
  operatorKey: string
  /** An operator who is a member of nothing. */
  operator: string
  /** Owner of another organization. */
  stranger: string
  /** A key of a project of that other organization. */
  strangerKey: string
  members: Record<Role, string>
}

const password = 'correct horse battery'

export async function signIn(service: TestService, email: string, secret = password): Promise<string> {
  const body = { grant_type: 'password', email, password: secret }
  return (await service.ok('authToken', { token: null, body })).access_token
}

/** A user of that organization with that role, who has accepted and is signed in. */
export async function addUser(
  service: TestService,
  user: { email: string; organization_id?: string; role?: Role; is_operator?: boolean },
): Promise<string> {
  const token = service.credentials.operator_key
  const { invite_url } = await service.ok('adminUserCreate', { token, body: user })
  const code = new URL(invite_url).searchParams.get('code')
  return (await service.ok('authAccept', { token: null, body: { code, password } })).access_token
}

export async function addProject(
  service: TestService,
  token: string,
  organization_id: string,
  name: string,
): Promise<string> {
  return (await service.ok('projectCreate', { token, body: { name, organization_id } })).id
}

export async function addKey(
  service: TestService,
  token: string,
  project_id: string,
  role: 'read' | 'write',
): Promise<{ id: string; secret: string }> {
  return service.ok('accessKeyCreate', { token, params: { project_id }, body: { name: role, role } })
}

/** Another organization that pays, with its owner. */
export async function addOrganization(
  service: TestService,
  name: string,
): Promise<{ id: string; owner: string }> {
  const token = service.credentials.operator_key
  const { id } = await service.ok('adminOrganizationCreate', { token, body: { name } })
  await setPayment(service, id, 'active')
  const owner = await addUser(service, {
    email: `owner@${name}.example`,
    organization_id: id,
    role: 'owner',
  })
  return { id, owner }
}

/** What the payment provider would bring about. */
export async function setPayment(
  service: TestService,
  organizationId: string,
  state: 'never' | 'active' | 'declined' | 'removed',
): Promise<void> {
  await service.sql('UPDATE organizations SET payment_state = $2 WHERE id = $1', [organizationId, state])
}

export async function makeCallers(service: TestService): Promise<Callers> {
  const { organization_id, project_id, email, password: ownerPassword } = service.credentials
  const owner = await signIn(service, email, ownerPassword)
  const roleOf = (role: Role) => addUser(service, { email: `${role}@harbour.example`, organization_id, role })
  const members = {
    viewer: await roleOf('viewer'),
    member: await roleOf('member'),
    admin: await roleOf('admin'),
    owner,
  }
  const sibling = await addProject(service, owner, organization_id, 'sibling')
  const revoked = await addKey(service, owner, project_id, 'write')
  await service.ok('accessKeyDelete', { token: owner, params: { key_id: revoked.id } })
  const other = await addOrganization(service, 'elsewhere')
  const strangerProject = await addProject(service, other.owner, other.id, 'theirs')

  const expired = await signIn(service, 'viewer@harbour.example')
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
    operator: await addUser(service, { email: 'operator@slipway.example', is_operator: true }),
    stranger: other.owner,
    strangerKey: (await addKey(service, other.owner, strangerProject, 'write')).secret,
    members,
  }
}
