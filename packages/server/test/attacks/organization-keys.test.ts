import type { Role } from '@slipway/contract'
import { eventually } from '@slipway/testing/eventually.ts'
import { addKey, addProject, addUser, ownerToken, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** Organization keys: what they give access to, and when they are revoked together with their creator's rights. */

let service: TestService
let owner: string
beforeAll(async () => {
  service = await startService((config) => {
    config.server.trustedProxies = ['127.0.0.1']
  })
  owner = await ownerToken(service)
})
afterAll(() => service?.close())

const member = async (role: Role) => {
  const { organization_id } = service.credentials
  const user = await addUser(service.database, { memberOf: { [organization_id]: role } })
  return { ...user, token: await tokenOf(service.database, user) }
}
const createKey = (token: string, role: Role, more = {}) =>
  service.call('organizationKeyCreate', { token, body: { name: role, role, ...more } })
const keyOf = async (token: string, role: Role) => (await createKey(token, role)).body
const works = async (secret: string) => (await service.call('rootGet', { token: secret })).status === 200

test('the list of organization keys shows prefix, last use and expiry of each key, but no secret', async () => {
  const expires_at = '2099-01-01T00:00:00.000Z'
  const { id, secret, prefix } = (
    await createKey(owner, 'viewer', { expires_at, allowed_cidrs: ['127.0.0.0/8'] })
  ).body
  const listed = async () =>
    (await service.ok('organizationKeyList', { token: owner })).items.find((key) => key.id === id)!
  expect(await listed()).toMatchObject({
    prefix,
    expires_at,
    last_used_at: '',
    allowed_cidrs: ['127.0.0.0/8'],
  })
  expect(secret.startsWith(`slp_${prefix.replace(/^slp_/, '')}`)).toBe(true)
  expect(JSON.stringify(await listed())).not.toContain(secret)
  expect(await works(secret)).toBe(true)
  await eventually(async () => (await listed()).last_used_at !== '')
})

test('an organization key gives access to every project of the organization, within its role', async () => {
  const { organization_id } = service.credentials
  const project_id = await addProject(service, owner, organization_id, 'second')
  const statuses = async (role: Role) => {
    const { secret: token } = await keyOf(owner, role)
    const body = { name: `of-${role}`, organization_id }
    const responses = [
      await service.call('vmList', { token }),
      await service.call('projectGet', { token, params: { project_id } }),
      await service.call('accessKeyCreate', { token, body: { name: 'k', role: 'read' } }),
      await service.call('projectCreate', { token, body }),
      await service.call('memberCreate', { token, body: { email: `${role}@example.com`, role: 'viewer' } }),
      await service.call('organizationBilling', { token }),
    ]
    return responses.map(({ status }) => status)
  }
  expect(await statuses('viewer')).toEqual([200, 200, 403, 403, 403, 403])
  expect(await statuses('member')).toEqual([200, 200, 403, 403, 403, 403])
  expect(await statuses('admin')).toEqual([200, 200, 200, 200, 403, 403])
  expect((await statuses('owner')).slice(0, 5)).toEqual([200, 200, 200, 200, 200])
  const { secret: token } = await keyOf(owner, 'viewer')
  expect((await service.ok('rootGet', { token })).caller).toMatchObject({
    kind: 'access_key',
    role: 'viewer',
    project_id: '',
    organization_id,
    is_operator: false,
  })
  const projects = await service.ok('projectList', { token })
  expect(projects.map(({ id }) => id)).toContain(project_id)
  expect((await service.call('adminUserList', { token })).status).toBe(403)
})

test('neither a user nor a key can create a key with more rights than its own', async () => {
  const admin = await member('admin')
  expect((await createKey(admin.token, 'owner')).status).toBe(403)
  const { secret } = await keyOf(admin.token, 'admin')
  expect((await createKey(secret, 'owner')).status).toBe(400)
  expect((await createKey(secret, 'admin')).body).toMatchObject({ created_by: admin.id, role: 'admin' })
  expect((await createKey(service.credentials.access_key, 'viewer')).status).toBe(403)
})

test('demoting a member revokes the member’s organization keys above the new role', async () => {
  const other = await member('owner')
  const keys = { owner: await keyOf(other.token, 'owner'), viewer: await keyOf(other.token, 'viewer') }
  await service.ok('memberUpdate', { token: owner, params: { user_id: other.id }, body: { role: 'member' } })
  expect(await works(keys.owner.secret)).toBe(false)
  expect(await works(keys.viewer.secret)).toBe(true)
})

test('removing a member revokes the member’s organization keys and lists the project keys that stay valid', async () => {
  const other = await member('admin')
  const ofOrganization = await keyOf(other.token, 'viewer')
  const left = await addKey(service, other.token, service.credentials.project_id, 'read')
  const params = { user_id: other.id }
  const response = await service.ok('memberDelete', { token: owner, params })
  expect(response.access_keys).toMatchObject([{ id: left.id, created_by: other.id }])
  expect(JSON.stringify(response)).not.toContain(left.secret)
  expect([await works(ofOrganization.secret), await works(left.secret)]).toEqual([false, true])

  const third = await member('admin')
  const gone = await addKey(service, third.token, service.credentials.project_id, 'read')
  const query = { revoke_keys: true }
  const removed = await service.ok('memberDelete', { token: owner, params: { user_id: third.id }, query })
  expect(removed.access_keys).toEqual([])
  expect(await works(gone.secret)).toBe(false)
  const { items } = await service.ok('adminEventList', {
    token: service.credentials.operator_key,
    query: { type: 'access_key.revoked', resource_id: gone.id },
  })
  expect(items).toHaveLength(1)
})

test('demoting a member lists the project keys that the member created, and revokes them on request', async () => {
  const demote = (user_id: string, role: Role, query = {}) =>
    service.ok('memberUpdate', { token: owner, params: { user_id }, query, body: { role } })
  const other = await member('admin')
  const left = await addKey(service, other.token, service.credentials.project_id, 'write')
  const demoted = await demote(other.id, 'viewer')
  expect(demoted).toMatchObject({ role: 'viewer', access_keys: [{ id: left.id, created_by: other.id }] })
  expect(JSON.stringify(demoted)).not.toContain(left.secret)
  expect(await works(left.secret)).toBe(true)
  // A change of role that is not a demotion revokes no key.
  expect((await demote(other.id, 'viewer', { revoke_keys: true })).access_keys).toEqual([])
  expect((await demote(other.id, 'admin', { revoke_keys: true })).access_keys).toEqual([])
  expect(await works(left.secret)).toBe(true)
  expect((await demote(other.id, 'member', { revoke_keys: true })).access_keys).toEqual([])
  expect(await works(left.secret)).toBe(false)
  const { items } = await service.ok('adminEventList', {
    token: service.credentials.operator_key,
    query: { type: 'access_key.revoked', resource_id: left.id },
  })
  expect(items).toHaveLength(1)
})

test('a key works from its allowed addresses, and is treated as unknown from all others', async () => {
  const body = {
    name: 'office',
    role: 'read',
    allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32', '192.0.2.7'],
  }
  const { secret, allowed_cidrs } = await service.ok('accessKeyCreate', { token: owner, body })
  expect(allowed_cidrs).toEqual(body.allowed_cidrs)
  const from = async (address: string) =>
    (await service.call('vmList', { token: secret, headers: { 'x-forwarded-for': address } })).status
  for (const inside of ['203.0.113.200', '2001:db8::1', '192.0.2.7', '::ffff:203.0.113.9'])
    expect(await from(inside), inside).toBe(200)
  for (const outside of ['203.0.114.1', '2001:db9::1', '192.0.2.8', '127.0.0.1'])
    expect(await from(outside), outside).toBe(401)
  const { operator_key: token } = service.credentials
  const narrow = { name: 'vpn', allowed_cidrs: ['198.51.100.0/24'] }
  const operator = await service.ok('adminKeyCreate', { token, body: narrow })
  expect((await service.call('adminUserList', { token: operator.secret })).status).toBe(401)
})

test('an invalid address block is rejected with its index', async () => {
  for (const block of ['10.0.0.1/8', '010.0.0.1', 'fe80::1%eth0', '2001:db8::/129', 'localhost', '']) {
    const body = { name: 'odd', role: 'read', allowed_cidrs: ['10.0.0.0/8', block] }
    const { status, body: error } = await service.call('accessKeyCreate', { token: owner, body })
    expect(status, block).toBe(400)
    expect((error as unknown as { details: { field: string }[] }).details[0]!.field).toBe('/allowed_cidrs/1')
  }
})
