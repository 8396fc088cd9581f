import { randomUUID } from 'node:crypto'
import { addUser, ownerToken, password, someEmail } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSetupCode } from '../../src/accounts/credentials.ts'

/** Lower limits than the defaults, in the same proportion, because each attempt costs a password hash. */
const limits = { passwordFailuresPerMinute: 3, passwordFailuresPerAddress: 6, passwordFailuresPerEmail: 9 }
let service: TestService
beforeAll(async () => {
  service = await startService((config) => {
    config.server.trustedProxies = ['127.0.0.0/8']
    Object.assign(config.limits, limits)
  })
})
afterAll(() => service.close())

let addresses = 0
/** Returns an address that is unique in this file. */
const newAddress = () => `198.18.${Math.floor(++addresses / 250)}.${addresses % 250}`

const from = (address: string, path: string, body: object, token: string | null = null) =>
  service.request('POST', `/v0.1/auth/${path}`, {
    token,
    body: JSON.stringify(body),
    headers: { 'x-forwarded-for': address },
  })
const signIn = async (address: string, email: string, word = password) =>
  (await from(address, 'token', { grant_type: 'password', email, password: word })).status
const guess = (address: string, email: string) => signIn(address, email, `guess ${randomUUID()}`)

test('a flood of random e-mail addresses from one client address does not block other clients', async () => {
  const users = await Promise.all(Array.from({ length: 25 }, () => addUser(service.database)))
  const attacker = newAddress()
  const flood = Promise.all(Array.from({ length: 300 }, () => guess(attacker, someEmail('random'))))
  const honest = await Promise.all(users.map(({ email }) => signIn(newAddress(), email)))
  expect(honest).toEqual(Array(25).fill(200))
  const statuses = await flood
  expect(statuses.filter((status) => status === 400)).toHaveLength(limits.passwordFailuresPerAddress)
  expect(statuses.filter((status) => status === 429)).toHaveLength(300 - limits.passwordFailuresPerAddress)
})

test('e-mail addresses tried from one client address are limited for a minute, per /64 for IPv6, and across all processes', async () => {
  const second = await service.another()
  for (const address of [() => '198.19.0.1', () => `2001:db8:7:8:${(++addresses).toString(16)}::1`]) {
    for (let index = 0; index < limits.passwordFailuresPerAddress; index++)
      expect(await guess(address(), someEmail('sprayed'))).toBe(400)
    const refused = await fetch(`${second.url}/v0.1/auth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address() },
      body: JSON.stringify({ grant_type: 'password', email: someEmail(), password }),
    })
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    expect(await guess('2001:db8:7:9::1', someEmail('neighbour'))).toBe(400)
    await service.clock.advance('61 seconds')
    expect(await guess(address(), someEmail('sprayed'))).toBe(400)
  }
})

test('successful sign-ins of an attacker do not reset the failure count of the client address', async () => {
  const own = await addUser(service.database)
  const address = newAddress()
  for (let index = 0; index < limits.passwordFailuresPerAddress - 1; index++) {
    expect(await guess(address, someEmail('sprayed'))).toBe(400)
    expect(await signIn(address, own.email)).toBe(200)
  }
  expect(await guess(address, someEmail('sprayed'))).toBe(400)
  expect(await guess(address, someEmail('sprayed'))).toBe(429)
  expect(await signIn(address, own.email)).toBe(429)
})

test.each(['known', 'unknown'])(
  'guesses at one %s e-mail address from many client addresses are delayed, and the delay doubles',
  async (kind) => {
    const email = kind === 'known' ? (await addUser(service.database)).email : someEmail('nobody')
    for (let index = 0; index < limits.passwordFailuresPerEmail; index++)
      expect(await guess(newAddress(), email)).toBe(400)
    for (const pauseSeconds of [60, 120, 240]) {
      expect(await guess(newAddress(), email)).toBe(429)
      await service.clock.advance(`${pauseSeconds - 40} seconds`)
      expect(await guess(newAddress(), email)).toBe(429)
      await service.clock.advance('41 seconds')
      expect(await guess(newAddress(), email)).toBe(400)
    }
    await service.clock.advance('1 hour')
    expect(await guess(newAddress(), email)).toBe(400)
  },
)

test('a user is never locked out at an address where they signed in within the last 30 days', async () => {
  const user = await addUser(service.database)
  const [home, former] = [newAddress(), newAddress()]
  expect(await signIn(former, user.email)).toBe(200)
  await service.clock.advance('29 days')
  expect(await signIn(home, user.email)).toBe(200)
  await service.clock.advance('2 days')
  for (let index = 0; index < limits.passwordFailuresPerEmail; index++)
    expect(await guess(newAddress(), user.email)).toBe(400)
  expect(await signIn(newAddress(), user.email)).toBe(429)
  expect(await signIn(former, user.email)).toBe(429)
  expect(await signIn(home, user.email)).toBe(200)
  // Guesses from that address are limited, too.
  for (let index = 0; index < limits.passwordFailuresPerMinute; index++)
    expect(await guess(home, user.email)).toBe(400)
  expect(await signIn(home, user.email)).toBe(429)
})

test.each([
  ['invitation', {}],
  ['accept', { password }],
  ['reset', { password }],
  ['setup', { password, email: 'first@example.com' }],
])('codes guessed at /auth/%s count as failed sign-ins of the address', async (path, body) => {
  const address = newAddress()
  const tryCode = async (code: string) => (await from(address, path, { ...body, code })).status
  for (let index = 0; index < limits.passwordFailuresPerMinute; index++)
    expect(await tryCode(randomUUID())).toBe(400)
  expect(await tryCode(randomUUID())).toBe(429)
  // A correct code is not confirmed while the address has to wait.
  const code = await service.database.transaction((tx) => createSetupCode(tx))
  expect((await from(address, 'setup', { code, email: someEmail(), password })).status).toBe(429)
  expect((await from(newAddress(), 'setup', { code, email: someEmail(), password })).status).toBe(200)
})

test('codes guessed from many client addresses lock no user out, and a correct code does not reset the count', async () => {
  for (let index = 0; index < limits.passwordFailuresPerEmail + 1; index++)
    expect((await from(newAddress(), 'reset', { code: 'guess', password })).status).toBe(400)
  const { user_id } = await service.ok('memberCreate', {
    token: await ownerToken(service),
    body: { email: someEmail('new'), role: 'viewer' },
  })
  const { invite_url } = await service.ok('memberInvite', {
    token: await ownerToken(service),
    params: { user_id },
  })
  const code = invite_url.split('code=')[1]!
  const address = newAddress()
  for (let index = 0; index < limits.passwordFailuresPerMinute; index++) {
    expect((await from(address, 'invitation', { code })).status).toBe(200)
    expect((await from(address, 'invitation', { code: 'guess' })).status).toBe(400)
  }
  expect((await from(address, 'invitation', { code })).status).toBe(429)
})
