import { addUser, password, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let operator: string
beforeAll(async () => {
  service = await startService()
  operator = service.credentials.operator_key
})
afterAll(() => service?.close())

const signIn = (email: string, word = password, headers = {}) =>
  service.call('authToken', {
    token: null,
    headers,
    body: { grant_type: 'password', email, password: word },
  })
const offer = async (user_id: string) => {
  const { reset_url } = await service.ok('adminUserReset', { token: operator, params: { user_id } })
  expect(reset_url).toMatch(/\/reset#code=slpc_[\w-]{43}$/)
  return reset_url.split('#code=')[1]!
}
const reset = (code: string, word: string) =>
  service.call('authReset', { token: null, body: { code, password: word } })

test('an operator’s reset link sets a new password once and ends all sessions', async () => {
  const user = await addUser(service.database)
  const session = await tokenOf(service.database, user)
  const code = await offer(user.id)
  expect((await service.call('rootGet', { token: session })).status).toBe(200)
  expect((await reset(code, 'a fresh passphrase')).body).toEqual({})
  expect((await service.call('rootGet', { token: session })).status).toBe(401)
  expect((await signIn(user.email)).status).toBe(400)
  expect((await signIn(user.email, 'a fresh passphrase')).status).toBe(200)
  expect((await reset(code, 'another passphrase')).status).toBe(400)
  const { items } = await service.ok('adminEventList', { token: operator, query: { resource_id: user.id } })
  const types = items.map(({ type }) => type)
  expect(types).toEqual(expect.arrayContaining(['user.reset_offered', 'user.password_reset']))
})

test('a reset link works for an hour, and only the newest one', async () => {
  const user = await addUser(service.database)
  const first = await offer(user.id)
  const second = await offer(user.id)
  expect((await reset(first, 'a fresh passphrase')).status).toBe(400)
  await service.clock.advance('61 minutes')
  expect((await reset(second, 'a fresh passphrase')).status).toBe(400)
  await service.clock.reset()
})

test('a reset link does not give access to the account of a suspended user', async () => {
  const user = await addUser(service.database)
  const code = await offer(user.id)
  const params = { user_id: user.id }
  await service.ok('adminUserUpdate', { token: operator, params, body: { suspended: true } })
  expect((await reset(code, 'a fresh passphrase')).status).toBe(400)
})

test('users can list their sessions and end one of them', async () => {
  const user = await addUser(service.database)
  const here = (await signIn(user.email, password, { 'user-agent': 'Laptop/1' })).body
  const there = (await signIn(user.email, password, { 'user-agent': 'Phone/1' })).body
  const token = here.access_token
  const { items } = await service.ok('authSessionList', { token })
  expect(items.map(({ user_agent, is_current }) => [user_agent, is_current])).toEqual([
    ['Phone/1', false],
    ['Laptop/1', true],
  ])
  expect(items[0]).toMatchObject({ client_address: '127.0.0.1', has_second_factor: false })
  const params = { session_id: items[0]!.id }
  expect(await service.ok('authSessionGet', { token, params })).toEqual(items[0])
  const stranger = await tokenOf(service.database, await addUser(service.database))
  expect((await service.call('authSessionGet', { token: stranger, params })).status).toBe(404)
  expect((await service.call('authSessionDelete', { token: stranger, params })).status).toBe(404)
  expect((await service.call('rootGet', { token: there.access_token })).status).toBe(200)
  await service.ok('authSessionDelete', { token, params })
  expect((await service.call('rootGet', { token: there.access_token })).status).toBe(401)
  const body = { grant_type: 'refresh_token', refresh_token: there.refresh_token }
  expect((await service.call('authToken', { token: null, body })).status).toBe(400)
  expect((await service.ok('authSessionList', { token })).items).toHaveLength(1)
})

test('users can end all other sessions at once', async () => {
  const user = await addUser(service.database)
  const [token, ...others] = await Promise.all([1, 2, 3].map(() => tokenOf(service.database, user)))
  await service.ok('authSessionDeleteAll', { token: token! })
  expect((await service.call('rootGet', { token: token! })).status).toBe(200)
  for (const other of others) expect((await service.call('rootGet', { token: other })).status).toBe(401)
})

test('without mail, a reset request does not claim that a mail was sent', async () => {
  expect(await service.ok('authOidcList', { token: null })).toMatchObject({ sends_mail: false })
  const user = await addUser(service.database)
  for (const email of [user.email, 'nobody@example.com']) {
    const { status, body } = await service.call('authForgot', { token: null, body: { email } })
    expect([status, (body as { code?: string }).code]).toEqual([409, 'conflict'])
  }
})
