import { addOrganization, addUser, keepSessions, password, tokenOf } from '@slipway/testing/people.ts'
import { refusedWithinASecond, send } from '@slipway/testing/requests.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAccessKey } from '../../src/accounts/credentials.ts'
import { isAccessKeyShape } from '../../src/domain/access-key.ts'
import { operatorScope } from '../../src/store/identity/access-keys.ts'

let service: TestService
const call = (method: string, path: string, request?: Parameters<typeof send>[3]) =>
  send(service.server, method, path, request)
let organizationId: string
let projectId: string
let admin: string
let adminId: string

beforeAll(async () => {
  service = await startService()
  organizationId = await addOrganization(service.database)
  const user = await addUser(service.database, { memberOf: { [organizationId]: 'admin' } })
  admin = await tokenOf(service.database, user)
  await keepSessions(service)
  adminId = user.id
  const body = { name: 'keys', organization_id: organizationId }
  projectId = (await call('POST', '/projects', { token: admin, body })).body.id
})
afterAll(async () => {
  await service?.close()
})

const addSession = async (options: Parameters<typeof addUser>[1]) =>
  tokenOf(service.database, await addUser(service.database, options))
const createKey = (body: Record<string, unknown> = { name: 'ci', role: 'write' }) =>
  call('POST', `/projects/${projectId}/access-keys`, { token: admin, body })

test('the secret of an access key is shown once and not in the list, which is sorted newest first', async () => {
  const { status, headers, body } = await createKey({ name: 'first', role: 'read' })
  expect(status).toBe(200)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(isAccessKeyShape(body.secret)).toBe(true)
  const { secret, ...record } = body
  expect(record).toEqual({
    id: expect.any(String),
    name: 'first',
    kind: 'bearer',
    role: 'read',
    prefix: secret.slice(0, 12),
    created_by: adminId,
    parent_id: '',
    allowed_cidrs: [],
    created_at: expect.any(String),
    expires_at: '',
    last_used_at: '',
  })
  const next = (await createKey({ name: 'second', role: 'write' })).body
  const { body: list } = await call('GET', `/projects/${projectId}/access-keys`, { token: admin })
  expect(list.items.slice(0, 2).map(({ id }: { id: string }) => id)).toEqual([next.id, record.id])
  expect(list.items[1]).toEqual(record)
  expect(JSON.stringify(list)).not.toContain(secret)
})

test('an access key can read its own record at the root, and sees only its own project and organization', async () => {
  const other = { name: 'elsewhere', organization_id: organizationId }
  await call('POST', '/projects', { token: admin, body: other })
  const { id, secret: token } = (await createKey()).body
  expect((await call('GET', '', { token })).body).toMatchObject({
    name: 'slipway',
    api_version: 'v0.1',
    caller: {
      kind: 'access_key',
      id,
      email: '',
      is_operator: false,
      role: 'write',
      project_id: projectId,
      organization_id: organizationId,
    },
  })
  const idsOf = async (path: string) =>
    (await call('GET', path, { token })).body.map((item: { id: string }) => item.id)
  expect(await idsOf('/projects')).toEqual([projectId])
  expect(await idsOf('/organizations')).toEqual([organizationId])
  expect((await call('GET', `/organizations/${organizationId}`, { token })).status).toBe(200)
})

test('an access key is refused by every server within a second of its revocation', async () => {
  const second = await service.another()
  try {
    const { id, secret: token } = (await createKey()).body
    const status = async (on: { url: string }) => (await send(on, 'GET', '', { token })).status
    expect([await status(service.server), await status(second)]).toEqual([200, 200])
    const path = `/projects/${projectId}/access-keys/${id}`
    expect((await call('DELETE', path, { token: admin })).body).toEqual({ revoked_descendants: [] })
    const revokedAt = performance.now()
    expect(await status(service.server)).toBe(401)
    await refusedWithinASecond(revokedAt, () => status(second))
    expect((await call('DELETE', path, { token: admin })).status).toBe(404)
  } finally {
    await second.close()
  }
})

test('an access key works until its expiry', async () => {
  const past = await createKey({ name: 'late', role: 'read', expires_at: '2020-01-01T00:00:00Z' })
  expect(past.body.details).toEqual([{ field: '/expires_at', message: 'must be in the future' }])
  const expiresAt = new Date(Date.now() + 3600_000)
  const { body } = await createKey({ name: 'brief', role: 'read', expires_at: expiresAt.toISOString() })
  expect(body.expires_at).toBe(expiresAt.toISOString())
  expect((await call('GET', '', { token: body.secret })).status).toBe(200)
  await service.clock.advance('3601 seconds')
  const status = async () => (await call('GET', '', { token: body.secret })).status
  await expect.poll(status).toBe(401)
  await service.clock.advance('-3601 seconds')
})

test('an access key with one wrong character is unknown', async () => {
  const { secret } = (await createKey()).body
  const mistyped = secret.slice(0, -1) + (secret.endsWith('a') ? 'b' : 'a')
  const { status, headers, body } = await call('GET', '', { token: mistyped })
  expect([status, headers.get('www-authenticate'), body.code]).toEqual([401, 'Bearer', 'unauthenticated'])
})

test('a project access key cannot create other keys', async () => {
  const { secret: token } = (await createKey()).body
  const path = `/projects/${projectId}/access-keys`
  const response = await call('POST', path, { token, body: { name: 'more', role: 'read' } })
  expect([response.status, response.body.code]).toEqual([403, 'permission_denied'])
})

test('access keys are listed in pages whose tokens work in no other list', async () => {
  const path = `/projects/${projectId}/access-keys`
  for (let i = 0; i < 3; i++) await createKey({ name: `page ${i}`, role: 'read' })
  const all = (await call('GET', path, { token: admin })).body.items
  const seen = []
  for (let pageToken = ''; ; ) {
    const { body } = await call('GET', `${path}?limit=2&page_token=${pageToken}`, { token: admin })
    seen.push(...body.items)
    expect(body.items.length).toBeLessThanOrEqual(2)
    pageToken = body.next_page_token
    if (pageToken === '') break
    const elsewhere = `/organizations/${organizationId}/members?page_token=${pageToken}`
    expect((await call('GET', elsewhere, { token: admin })).body.code).toBe('invalid_argument')
  }
  expect(seen).toEqual(all)
})

const codeOf = (url: string) => new URLSearchParams(new URL(url).hash.slice(1)).get('code')
const operatorKey = async () => {
  const key = await service.database.transaction((tx) =>
    createAccessKey(tx, { scope: operatorScope, name: 'operations', role: 'write', createdBy: null }),
  )
  return key!.secret
}

test('operators without a membership see empty lists and no tenant', async () => {
  const user = await addSession({ isOperator: true })
  for (const token of [user, await operatorKey()]) {
    expect((await call('GET', '', { token })).body.caller.is_operator).toBe(true)
    expect((await call('GET', '/organizations', { token })).body).toEqual([])
    expect((await call('GET', '/projects', { token })).body).toEqual([])
    expect((await call('GET', `/projects/${projectId}`, { token })).status).toBe(404)
    expect((await call('GET', `/organizations/${organizationId}`, { token })).status).toBe(404)
  }
})

test('operators can create an organization and its first owner, who can invite others', async () => {
  const token = await operatorKey()
  const organization = await call('POST', '/admin/organizations', { token, body: { name: 'New' } })
  expect(organization.body).toEqual({
    id: expect.any(String),
    name: 'New',
    payment_customer_id: '',
    require_totp: false,
  })
  const email = `owner-${organization.body.id}@example.com`
  const body = { email, organization_id: organization.body.id, role: 'owner' }
  const user = await call('POST', '/admin/users', { token, body })
  expect(user.body).toMatchObject({ email, state: 'invited', is_operator: false, suspended: false })
  const code = codeOf(user.body.invite_url)
  const accepted = await call('POST', '/auth/accept', { body: { code, password } })
  expect((await call('POST', '/admin/users', { token, body })).body.code).toBe('already_exists')
  const path = `/organizations/${organization.body.id}/members`
  const invited = await call('POST', path, {
    token: accepted.body.access_token,
    body: { email: `friend-${organization.body.id}@example.com`, role: 'viewer' },
  })
  expect(invited.body.state).toBe('invited')
})

test('operators can suspend a user, whose sessions end immediately and permanently', async () => {
  const token = await operatorKey()
  const user = await addUser(service.database, { memberOf: { [organizationId]: 'viewer' } })
  const session = await tokenOf(service.database, user)
  expect((await call('GET', '', { token: session })).status).toBe(200)
  const set = (suspended: boolean) => call('PATCH', `/admin/users/${user.id}`, { token, body: { suspended } })
  expect((await set(true)).body.suspended).toBe(true)
  expect((await call('GET', '', { token: session })).status).toBe(401)
  expect((await set(false)).body.suspended).toBe(false)
  expect((await call('GET', '', { token: session })).status).toBe(401)
  const grant = { grant_type: 'password', email: user.email, password }
  expect((await call('POST', '/auth/token', { body: grant })).status).toBe(200)
})

test('operators can list organizations, projects and users page by page', async () => {
  const token = await operatorKey()
  for (const path of ['/admin/organizations', '/admin/projects', '/admin/users']) {
    const all = (await call('GET', path, { token })).body.items
    const first = (await call('GET', `${path}?limit=1`, { token })).body
    const rest = await call('GET', `${path}?page_token=${first.next_page_token}`, { token })
    expect([...first.items, ...rest.body.items]).toEqual(all)
  }
})
