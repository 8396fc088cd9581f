import { addOrganization, addUser, password, someEmail } from '@slipway/testing/people.ts'
import { refusedWithinASecond, send } from '@slipway/testing/requests.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSetupCode } from '../../src/accounts/credentials.ts'
import { invite } from '../../src/accounts/invitations.ts'
import type { Server } from '../../src/server.ts'
import { reservePasswordAttempt } from '../../src/store/identity/password-failures.ts'

/** A lower limit than the default, because each attempt costs a password hash. */
const mostFailures = 4
let service: TestService
const call = (method: string, path: string, request?: Parameters<typeof send>[3]) =>
  send(service.server, method, path, request)

beforeAll(async () => {
  service = await startService((config) => {
    config.server.trustedProxies = ['127.0.0.1']
    config.limits.passwordFailuresPerMinute = mostFailures
  })
})
afterAll(async () => {
  await service?.close()
})

const signIn = (email: string, secret = password, on = service.server) =>
  send(on, 'POST', '/auth/token', {
    body: { grant_type: 'password', email, password: secret },
    headers: { 'x-forwarded-for': '192.0.2.7' },
  })
const refresh = (token: string, on = service.server) =>
  send(on, 'POST', '/auth/token', { body: { grant_type: 'refresh_token', refresh_token: token } })
const whoIs = async (token: string, on = service.server) => (await send(on, 'GET', '', { token })).status

/** Returns the parts of a response that must be identical for the client. */
const shapeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => {
  const { request_id: _, ...rest } = body
  return { status, ...rest }
}

test('signing in returns opaque tokens that identify the caller', async () => {
  const user = await addUser(service.database)
  const { status, headers, body } = await signIn(user.email.toUpperCase())
  expect(status).toBe(200)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(body).toEqual({
    access_token: expect.stringMatching(/^slpa_[\w-]{43}$/),
    refresh_token: expect.stringMatching(/^slpr_[\w-]{43}$/),
    expires_in: 3600,
    token_type: 'bearer',
  })
  const root = await call('GET', '', { token: body.access_token })
  expect(root.body.caller).toEqual({
    kind: 'user',
    id: user.id,
    email: user.email,
    is_operator: false,
    has_totp: false,
    role: '',
    project_id: '',
    organization_id: '',
    address: '127.0.0.1',
  })
})

test('neither tokens nor passwords are stored in plain text', async () => {
  const user = await addUser(service.database)
  const { body } = await signIn(user.email)
  const next = (await refresh(body.refresh_token)).body
  const secrets = [body, next].flatMap((response) => [response.access_token, response.refresh_token])
  for (const table of ['users', 'token_families', 'access_tokens', 'refresh_tokens', 'events']) {
    const { rows } = await service.database.query({
      text: `SELECT t::text AS row FROM ${table} t`,
    })
    const content = rows.map(({ row }) => row).join('\n')
    for (const secret of [...secrets, password]) {
      expect(content).not.toContain(secret)
      expect(content).not.toContain(Buffer.from(secret).toString('hex'))
    }
  }
})

test('an unknown, an invited and a suspended e-mail address get the response of a wrong password', async () => {
  const user = await addUser(service.database)
  const suspended = await addUser(service.database)
  await service.database.query({
    text: 'UPDATE users SET suspended_at = slipway_now() WHERE id = $1',
    values: [suspended.id],
  })
  const invited = await addUser(service.database)
  await service.database.query({
    text: 'UPDATE users SET password_hash = NULL WHERE id = $1',
    values: [invited.id],
  })
  const wrong = await signIn(user.email, 'something else')
  expect(shapeOf(wrong)).toEqual({
    status: 400,
    code: 'invalid_grant',
    message: wrong.body.message,
    error: 'invalid_grant',
    error_description: wrong.body.message,
  })
  for (const email of [someEmail('nobody'), suspended.email, invited.email, 'not an address'])
    expect(shapeOf(await signIn(email))).toEqual(shapeOf(wrong))
})

test('an access token expires after an hour', async () => {
  const user = await addUser(service.database)
  const { body } = await signIn(user.email)
  await service.clock.advance('3590 seconds')
  expect(await whoIs(body.access_token)).toBe(200)
  await service.clock.advance('11 seconds')
  await expect.poll(() => whoIs(body.access_token)).toBe(401)
})

const wrong = (on: Server, email: string, from = '192.0.2.7') =>
  send(on, 'POST', '/auth/token', {
    body: { grant_type: 'password', email, password: 'wrong' },
    headers: { 'x-forwarded-for': from },
  })

test('failed sign-ins are counted across processes, and too many in a minute are delayed', async () => {
  const user = await addUser(service.database)
  const second = await service.another()
  try {
    for (let i = 0; i < mostFailures; i++)
      expect((await wrong(i % 2 ? service.server : second, user.email)).status).toBe(400)
    for (const on of [service.server, second]) {
      const refused = await signIn(user.email, password, on)
      expect(refused.status).toBe(429)
      expect(refused.body.code).toBe('rate_limited')
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    }
    await service.clock.advance('61 seconds')
    expect((await signIn(user.email)).status).toBe(200)
  } finally {
    await second.close()
  }
})

test('failed sign-ins block neither other e-mail addresses from the same client nor the same e-mail address from other clients', async () => {
  const [user, other] = [await addUser(service.database), await addUser(service.database)]
  for (let i = 0; i < mostFailures; i++) await wrong(service.server, user.email, '192.0.2.8')
  expect((await wrong(service.server, user.email, '192.0.2.8')).status).toBe(429)
  expect((await wrong(service.server, other.email, '192.0.2.8')).status).toBe(400)
  expect((await signIn(user.email)).status).toBe(200)
})

test('failed sign-ins are counted by the client address that a trusted proxy reports', async () => {
  const user = await addUser(service.database)
  const exposed = await service.another((config) => {
    config.server.trustedProxies = []
  })
  for (let i = 0; i < mostFailures; i++)
    expect((await wrong(exposed, user.email, `192.0.2.${100 + i}`)).status).toBe(400)
  expect((await wrong(exposed, user.email, '192.0.2.99')).status).toBe(429)
  expect((await wrong(service.server, user.email, '192.0.2.99')).status).toBe(400)
})

test('failed sign-ins with an unknown e-mail address are counted like those with a known one', async () => {
  const email = someEmail('nobody')
  for (let i = 0; i < mostFailures; i++) expect((await wrong(service.server, email)).status).toBe(400)
  expect((await wrong(service.server, email)).status).toBe(429)
})

test('concurrent failed sign-ins are limited like sequential ones', async () => {
  const user = await addUser(service.database)
  const second = await service.another()
  try {
    const responses = await Promise.all(
      Array.from({ length: 12 }, (_, i) => wrong(i % 2 ? service.server : second, user.email)),
    )
    expect(responses.filter(({ status }) => status === 400)).toHaveLength(mostFailures)
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(12 - mostFailures)
  } finally {
    await second.close()
  }
})

test('failed sign-ins are counted in the database, whichever process handles them', async () => {
  const limits = { ...service.config.limits, passwordFailuresPerMinute: 10 }
  const attempts = Array.from({ length: 40 }, () =>
    service.database.transaction((tx) =>
      reservePasswordAttempt(tx, { email: 'ada@example.com', address: '192.0.2.1' }, limits),
    ),
  )
  const outcomes = await Promise.all(attempts)
  expect(outcomes.filter(({ waitSeconds }) => waitSeconds === 0)).toHaveLength(10)
})

test('failed sign-ins are reset by a success, and many concurrent correct sign-ins all succeed', async () => {
  const user = await addUser(service.database)
  for (let i = 0; i < mostFailures - 1; i++) await wrong(service.server, user.email)
  expect((await signIn(user.email)).status).toBe(200)
  for (let i = 0; i < mostFailures - 1; i++)
    expect((await wrong(service.server, user.email)).status).toBe(400)
  expect((await signIn(user.email)).status).toBe(200)
  const responses = await Promise.all(Array.from({ length: 8 }, () => signIn(user.email)))
  expect(responses.map(({ status }) => status)).toEqual(Array(8).fill(200))
})

const session = async () => (await signIn((await addUser(service.database)).email)).body

test('a refresh token is replaced when it is used', async () => {
  const first = await session()
  const second = (await refresh(first.refresh_token)).body
  expect(second.refresh_token).not.toBe(first.refresh_token)
  expect(await whoIs(second.access_token)).toBe(200)
  expect(await whoIs(first.access_token)).toBe(200)
  expect((await refresh(second.refresh_token)).status).toBe(200)
})

test('a refresh token returns the same successor again for 10 s', async () => {
  const { refresh_token } = await session()
  await service.clock.freeze()
  const first = (await refresh(refresh_token)).body
  await service.clock.advance('9 seconds')
  const again = (await refresh(refresh_token)).body
  expect(again.refresh_token).toBe(first.refresh_token)
  expect(again.access_token).toBe(first.access_token)
  expect(again.expires_in).toBeLessThanOrEqual(3591)
  expect((await refresh(first.refresh_token)).status).toBe(200)
  await service.clock.thaw()
})

test('reusing a refresh token after 10 s ends its session', async () => {
  const { refresh_token } = await session()
  const successor = (await refresh(refresh_token)).body
  await service.clock.advance('11 seconds')
  expect((await refresh(refresh_token)).body.code).toBe('invalid_grant')
  expect(await whoIs(successor.access_token)).toBe(401)
  expect((await refresh(successor.refresh_token)).body.code).toBe('invalid_grant')
})

test('reusing a refresh token after its successor was used ends its session', async () => {
  const { refresh_token } = await session()
  const second = (await refresh(refresh_token)).body
  const third = (await refresh(second.refresh_token)).body
  expect((await refresh(refresh_token)).status).toBe(400)
  expect(await whoIs(third.access_token)).toBe(401)
  expect((await refresh(third.refresh_token)).status).toBe(400)
})

test('concurrent uses of a refresh token give one successor', async () => {
  const { refresh_token } = await session()
  const responses = await Promise.all(Array.from({ length: 10 }, () => refresh(refresh_token)))
  expect(new Set(responses.map(({ body }) => body.refresh_token)).size).toBe(1)
})

test('a refresh token works for 30 days and no longer', async () => {
  const [one, other] = [await session(), await session()]
  await service.clock.advance(`${30 * 24 * 3600 - 60} seconds`)
  expect((await refresh(one.refresh_token)).status).toBe(200)
  await service.clock.advance('61 seconds')
  expect((await refresh(other.refresh_token)).body.code).toBe('invalid_grant')
})

test('an unknown refresh token gets the same response as a used one', async () => {
  const { refresh_token } = await session()
  await call('POST', '/auth/revoke', { body: { refresh_token } })
  expect(shapeOf(await refresh('slpr_nobody'))).toEqual(shapeOf(await refresh(refresh_token)))
})

test('revoking a refresh token ends its session in every server', async () => {
  const second = await service.another()
  try {
    const { access_token, refresh_token } = await session()
    expect(await whoIs(access_token, second)).toBe(200)
    const revoked = await call('POST', '/auth/revoke', { body: { refresh_token } })
    expect([revoked.status, revoked.body]).toEqual([200, {}])
    const revokedAt = performance.now()
    expect(await whoIs(access_token)).toBe(401)
    await refusedWithinASecond(revokedAt, () => whoIs(access_token, second))
    expect((await refresh(refresh_token)).status).toBe(400)
    expect((await call('POST', '/auth/revoke', { body: { refresh_token } })).status).toBe(200)
  } finally {
    await second.close()
  }
})

const change = (token: string, current: string, next = 'another long one') =>
  call('POST', '/auth/password', {
    token,
    body: { current_password: current, new_password: next },
  })

test('a password change ends all sessions except the current one', async () => {
  const user = await addUser(service.database)
  const [own, other] = [(await signIn(user.email)).body, (await signIn(user.email)).body]
  expect((await change(own.access_token, password)).status).toBe(200)
  expect(await whoIs(own.access_token)).toBe(200)
  expect(await whoIs(other.access_token)).toBe(401)
  expect((await refresh(own.refresh_token)).status).toBe(200)
  expect((await refresh(other.refresh_token)).status).toBe(400)
  expect((await signIn(user.email)).status).toBe(400)
  expect((await signIn(user.email, 'another long one')).status).toBe(200)
  const { rows } = await service.database.query({
    text: "SELECT actor FROM events_written WHERE type = 'user.password_changed' AND resource_id = $1",
    values: [user.id],
  })
  expect(rows).toEqual([{ actor: `user:${user.id}` }])
})

test('a password change needs the current password', async () => {
  const user = await addUser(service.database)
  const { access_token } = (await signIn(user.email)).body
  expect((await change(access_token, 'not it')).body.code).toBe('invalid_grant')
  expect((await change(access_token, password, 'short')).body.code).toBe('invalid_argument')
  expect((await signIn(user.email)).status).toBe(200)
})

test('the setup code creates one operator', async () => {
  const code = await service.database.transaction((tx) => createSetupCode(tx))
  const setUp = (email: string) => call('POST', '/auth/setup', { body: { code, email, password } })
  const responses = await Promise.all([1, 2, 3].map(() => setUp(someEmail('operator'))))
  expect(responses.map(({ status }) => status).sort()).toEqual([200, 400, 400])
  expect(responses.find(({ status }) => status === 400)?.body.code).toBe('invalid_grant')
  const token = responses.find(({ status }) => status === 200)?.body.access_token
  expect((await call('GET', '', { token })).body.caller.is_operator).toBe(true)
  expect((await call('GET', '/admin/users', { token })).status).toBe(200)
})

test('the setup code is valid for a day', async () => {
  const code = await service.database.transaction((tx) => createSetupCode(tx))
  const setUp = () => call('POST', '/auth/setup', { body: { code, email: someEmail('operator'), password } })
  await service.clock.advance('24 hours 1 second')
  expect((await setUp()).body.code).toBe('invalid_grant')
  await service.clock.reset()
  expect((await setUp()).status).toBe(200)
})

test('a refused set-up leaves the code valid', async () => {
  const user = await addUser(service.database)
  const code = await service.database.transaction((tx) => createSetupCode(tx))
  const setUp = (email: string) => call('POST', '/auth/setup', { body: { code, email, password } })
  expect((await setUp(user.email)).body.code).toBe('invalid_argument')
  expect((await setUp(someEmail('operator'))).status).toBe(200)
})

test('an invitation works once, within seven days', async () => {
  const organizationId = await addOrganization(service.database)
  const { id } = await addUser(service.database, { memberOf: { [organizationId]: 'owner' } })
  const grant = { organizationId, role: 'member', isOperator: false } as const
  const inviter = { invitedBy: 'a friend', makerUserId: id, makerKeyId: null, madeAs: 'owner' } as const
  const invited = () => service.database.transaction((tx) => invite(tx, someEmail(), [grant], inviter))
  const accept = (code: string) => call('POST', '/auth/accept', { body: { code, password } })
  const [{ code }, { code: late }] = [await invited(), await invited()]
  const { body } = await accept(code)
  const organizations = await call('GET', '/organizations', { token: body.access_token })
  expect(organizations.body.map(({ id }: { id: string }) => id)).toEqual([organizationId])
  expect((await accept(code)).body.code).toBe('invalid_grant')
  await service.clock.advance(`${7 * 24 * 3600 + 1} seconds`)
  expect((await accept(late)).body.code).toBe('invalid_grant')
  expect((await accept('slpc_nobody')).body.error).toBe('invalid_grant')
})

test('no secret reaches the log', () => {
  const log = service.logLines.join('\n')
  expect(log).toContain('/auth/token')
  expect(log).not.toContain(password)
  expect(log).not.toMatch(/slp[arc]_[\w-]{20}/)
})
