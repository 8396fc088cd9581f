import { addOrganization, addUser, password, someEmail, tokenOf } from '@slipway/testing/people.ts'
import { send } from '@slipway/testing/requests.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

let service: TestService
const call = (method: string, path: string, request?: Parameters<typeof send>[3]) =>
  send(service.server, method, path, request)
let organizationId: string
let path: string
let owner: { id: string; email: string; token: string }

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  await service?.close()
})
beforeEach(async () => {
  organizationId = await addOrganization(service.database)
  path = `/organizations/${organizationId}/members`
  owner = await member('owner')
})

async function member(role: 'viewer' | 'member' | 'admin' | 'owner') {
  const user = await addUser(service.database, { memberOf: { [organizationId]: role } })
  return { ...user, token: await tokenOf(service.database, user) }
}
const invite = (body: { email: string; role: string }, token = owner.token, on = path) =>
  call('POST', on, { token, body })
const codeIn = (response: { body: { invite_url: string } }) =>
  new URLSearchParams(new URL(response.body.invite_url).hash.slice(1)).get('code')
const accept = (code: string | null) => call('POST', '/auth/accept', { body: { code, password } })
const events = async (type: string) =>
  (
    await service.database.query({
      text: 'SELECT resource_id, actor, data FROM events_written WHERE organization_id = $1 AND type = $2',
      values: [organizationId, type],
    })
  ).rows

test('an invited new user accepts with a password and becomes active', async () => {
  const email = someEmail('friend')
  const invited = await invite({ email: email.toUpperCase(), role: 'member' })
  expect(invited.body).toEqual({
    user_id: expect.any(String),
    email,
    role: 'member',
    state: 'invited',
    created_at: expect.any(String),
    invite_url: expect.stringMatching(/^http.*\/accept#code=slpc_[\w-]{43}$/),
  })
  const { body } = await accept(codeIn(invited))
  const list = (await call('GET', path, { token: body.access_token })).body
  const { invite_url: _, ...record } = invited.body
  const { user_id, ...joined } = list.items[0]
  expect(joined).toMatchObject({ email, role: 'member', state: 'active' })
  expect(user_id, 'the account has a different id').not.toBe(record.user_id)
  expect(list.items[1]).toMatchObject({ user_id: owner.id, role: 'owner' })
  expect(await events('member.invited')).toMatchObject([
    { resource_id: record.user_id, actor: `user:${owner.id}` },
  ])
  expect(await events('member.accepted')).toMatchObject([{ actor: `user:${user_id}` }])
  expect(JSON.stringify(await events('member.invited'))).not.toContain('slpc_')
})

test('an existing user joins with the link in their own session, only once', async () => {
  const user = await addUser(service.database)
  const token = await tokenOf(service.database, user)
  const invited = await invite({ email: user.email, role: 'viewer' })
  expect(invited.body.state).toBe('invited')
  expect(invited.body.user_id).not.toBe(user.id)
  expect((await call('GET', '/organizations', { token })).body).toEqual([])
  const shown = await call('POST', '/auth/invitation', { body: { code: codeIn(invited) } })
  expect(shown.body).toEqual({
    organization_name: 'Harbour Labs',
    role: 'viewer',
    is_operator: false,
    email: user.email,
    invited_by: owner.email,
    expires_at: expect.stringMatching(/Z$/),
  })
  const join = () => call('POST', '/auth/accept', { token, body: { code: codeIn(invited) } })
  expect((await join()).body).toEqual({})
  expect((await call('GET', path, { token })).body.items[0]).toMatchObject({
    user_id: user.id,
    state: 'active',
  })
  expect((await join()).body.code).toBe('invalid_grant')
  expect((await invite({ email: user.email, role: 'admin' })).body.code).toBe('already_exists')
})

test('a new link replaces the previous one, and is refused for a user who has already joined', async () => {
  const invited = await invite({ email: someEmail('again'), role: 'viewer' })
  const renew = (id: string) => call('POST', `${path}/${id}/invite`, { token: owner.token })
  const renewed = await renew(invited.body.user_id)
  expect(renewed.body).toMatchObject({ user_id: invited.body.user_id, role: 'viewer', state: 'invited' })
  const repeated = await invite({ email: invited.body.email, role: 'admin' })
  expect(repeated.body).toMatchObject({ user_id: invited.body.user_id, role: 'admin' })
  for (const dead of [invited, renewed]) expect((await accept(codeIn(dead))).body.code).toBe('invalid_grant')
  expect((await accept(codeIn(repeated))).status).toBe(200)
  expect((await renew(owner.id)).body.code).toBe('conflict')
})

test('the role of an invitation can be changed until it is redeemed', async () => {
  const invited = await invite({ email: someEmail('role'), role: 'viewer' })
  const one = `${path}/${invited.body.user_id}`
  const changed = await call('PATCH', one, { token: owner.token, body: { role: 'admin' } })
  expect(changed.body).toMatchObject({ role: 'admin', state: 'invited' })
  const { body } = await accept(codeIn(invited))
  expect((await call('GET', path, { token: body.access_token })).body.items[0].role).toBe('admin')
})

test('a role change takes effect immediately in open sessions', async () => {
  const other = await member('viewer')
  const create = (name: string) =>
    call('POST', '/projects', { token: other.token, body: { name, organization_id: organizationId } })
  expect((await create('one')).status).toBe(403)
  const raised = await call('PATCH', `${path}/${other.id}`, {
    token: owner.token,
    body: { role: 'admin' },
  })
  expect(raised.body).toMatchObject({ user_id: other.id, role: 'admin', state: 'active' })
  expect((await create('one')).status).toBe(200)
  expect((await call('DELETE', `${path}/${other.id}`, { token: owner.token })).body).toEqual({
    access_keys: [],
  })
  expect((await create('two')).status).toBe(404)
})

test('only owners manage members', async () => {
  const other = await member('viewer')
  for (const role of ['viewer', 'member', 'admin'] as const) {
    const { token } = await member(role)
    expect((await call('GET', path, { token })).status).toBe(200)
    expect((await invite({ email: someEmail(), role: 'viewer' }, token)).status).toBe(403)
    const body = { role: 'owner' }
    expect((await call('PATCH', `${path}/${other.id}`, { token, body })).status).toBe(403)
    expect((await call('DELETE', `${path}/${other.id}`, { token })).status).toBe(403)
  }
})

test('the last owner can neither leave nor be demoted', async () => {
  const { id, token } = owner
  const stepDown = () => call('PATCH', `${path}/${id}`, { token, body: { role: 'admin' } })
  const leave = () => call('DELETE', `${path}/${id}`, { token })
  expect((await stepDown()).body.code).toBe('conflict')
  expect((await leave()).body.code).toBe('conflict')
  await invite({ email: someEmail('invited'), role: 'owner' })
  expect((await leave()).body.code).toBe('conflict')
  await member('owner')
  expect((await stepDown()).status).toBe(200)
})

test('if eight owners leave at the same time, one stays', async () => {
  const owners = [owner, ...(await Promise.all(Array.from({ length: 7 }, () => member('owner'))))]
  const leave = ({ id, token }: typeof owner) => call('DELETE', `${path}/${id}`, { token })
  const responses = await Promise.all(owners.map(leave))
  expect(responses.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 409])
})

test('a user who is not a member of the organization in the path is not found', async () => {
  const stranger = await addUser(service.database)
  const body = { role: 'viewer' }
  for (const id of [stranger.id, organizationId]) {
    expect((await call('PATCH', `${path}/${id}`, { token: owner.token, body })).status).toBe(404)
    expect((await call('DELETE', `${path}/${id}`, { token: owner.token })).status).toBe(404)
  }
})

test('an invitation ends when the membership is removed', async () => {
  const invited = await invite({ email: someEmail('gone'), role: 'viewer' })
  await call('DELETE', `${path}/${invited.body.user_id}`, { token: owner.token })
  expect((await accept(codeIn(invited))).body.code).toBe('invalid_grant')
  const again = await invite({ email: invited.body.email, role: 'viewer' })
  expect((await accept(codeIn(again))).status).toBe(200)
})

test('the link of one organization does not work for another', async () => {
  const email = someEmail('shared')
  const first = await invite({ email, role: 'owner' })
  const elsewhere = await addOrganization(service.database)
  const foreign = await addUser(service.database, { memberOf: { [elsewhere]: 'owner' } })
  const token = await tokenOf(service.database, foreign)
  const second = await invite({ email, role: 'viewer' }, token, `/organizations/${elsewhere}/members`)
  const { body } = await accept(codeIn(first))
  const seen = () => call('GET', '/organizations', { token: body.access_token })
  expect((await seen()).body.map(({ id }: { id: string }) => id)).toEqual([organizationId])
  await call('POST', '/auth/accept', { token: body.access_token, body: { code: codeIn(second) } })
  expect((await seen()).body).toHaveLength(2)
})

test('members are listed in pages, newest first', async () => {
  for (let i = 0; i < 4; i++) await invite({ email: someEmail(`page${i}`), role: 'viewer' })
  const all = (await call('GET', path, { token: owner.token })).body.items
  const created = all.map((item: { created_at: string }) => item.created_at)
  expect(created).toEqual([...created].sort().reverse())
  const seen = []
  for (let pageToken = ''; ; ) {
    const page = `${path}?limit=2&page_token=${pageToken}`
    const { body } = await call('GET', page, { token: owner.token })
    seen.push(...body.items)
    pageToken = body.next_page_token
    if (pageToken === '') break
  }
  expect(seen).toEqual(all)
})

test('an invitation to an undeliverable address is rejected', async () => {
  const { status, body } = await invite({ email: 'a b@example.com', role: 'viewer' })
  expect([status, body.code]).toEqual([400, 'invalid_argument'])
  const odd = await invite({ email: 'ada@-example.com', role: 'viewer' })
  expect(odd.body.details).toEqual([{ field: '/email', message: 'is not an e-mail address' }])
})
