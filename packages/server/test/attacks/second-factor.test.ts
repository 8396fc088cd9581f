import { addOrganization, addUser, password, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { URI } from 'otpauth'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readServiceTime } from '../../src/postgres/ping.ts'

/** The password alone is not enough to sign in. */

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.close())

interface Person {
  id: string
  email: string
  token: string
}

const newPerson = async (memberOf = {}): Promise<Person> => {
  const user = await addUser(service.database, { memberOf })
  return { ...user, token: await tokenOf(service.database, user) }
}
const signIn = (email: string, more = {}) =>
  service.call('authToken', { token: null, body: { grant_type: 'password', email, password, ...more } })
const failureOf = ({ status, body }: { status: number; body: unknown }) => {
  const { code, error_description } = body as { code: string; error_description: string }
  return [status, code, error_description]
}
/** Returns the authenticator's code at the service's time. */
const codeAt = async (uri: string) =>
  URI.parse(uri).generate({ timestamp: (await readServiceTime(service.database)).getTime() } as never)

async function enrol(person: Person) {
  const { token } = person
  const { otpauth_uri } = await service.ok('authTotpCreate', { token, body: { current_password: password } })
  const code = await codeAt(otpauth_uri)
  const { recovery_codes } = await service.ok('authTotpConfirm', { token, body: { code } })
  // The code that confirmed the set-up is already used, so the next code is needed.
  await service.clock.advance('31 seconds')
  return { uri: otpauth_uri, recoveryCodes: recovery_codes, spent: code }
}

test('a two-factor code is requested only after the correct password, and each code works once', async () => {
  const person = await newPerson()
  const { uri, spent } = await enrol(person)
  expect(failureOf(await signIn(person.email))).toEqual([400, 'invalid_grant', 'totp_required'])
  const wrongPassword = await signIn(person.email, {
    password: 'wrong password',
    totp_code: await codeAt(uri),
  })
  expect(failureOf(wrongPassword)[2]).toBe('The e-mail or the password is wrong.')
  expect(failureOf(await signIn(person.email, { totp_code: '000000' }))[1]).toBe('invalid_grant')
  expect(failureOf(await signIn(person.email, { totp_code: spent }))[1]).toBe('invalid_grant')
  const totp_code = await codeAt(uri)
  expect((await signIn(person.email, { totp_code })).status).toBe(200)
  expect(failureOf(await signIn(person.email, { totp_code }))[1]).toBe('invalid_grant')
})

test('the caller can see whether two-factor authentication is set up, which counts only after it is confirmed', async () => {
  const person = await newPerson()
  const hasTotp = async () => (await service.ok('rootGet', { token: person.token })).caller.has_totp
  expect(await hasTotp()).toBe(false)
  await service.ok('authTotpCreate', { token: person.token, body: { current_password: password } })
  expect(await hasTotp()).toBe(false)
  const { recoveryCodes } = await enrol(person)
  expect(await hasTotp()).toBe(true)
  await service.ok('authTotpRemove', { token: person.token, body: { code: recoveryCodes[0] } })
  expect(await hasTotp()).toBe(false)
  expect((await service.ok('rootGet')).caller.has_totp).toBe(false)
})

test('one code completes only one of several concurrent sign-ins', async () => {
  const person = await newPerson()
  const { uri } = await enrol(person)
  const totp_code = await codeAt(uri)
  const responses = await Promise.all(Array.from({ length: 4 }, () => signIn(person.email, { totp_code })))
  expect(responses.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400])
})

test('each recovery code replaces a two-factor code once, in any spelling', async () => {
  const person = await newPerson()
  const { recoveryCodes } = await enrol(person)
  expect(recoveryCodes).toHaveLength(10)
  expect(new Set(recoveryCodes).size).toBe(10)
  const [first, second] = recoveryCodes as [string, string]
  const retyped = first.toUpperCase().replaceAll('-', ' ')
  expect((await signIn(person.email, { totp_code: retyped })).status).toBe(200)
  expect((await signIn(person.email, { totp_code: first })).status).toBe(400)
  expect((await signIn(person.email, { totp_code: second })).status).toBe(200)
  const stranger = await newPerson()
  await enrol(stranger)
  expect((await signIn(stranger.email, { totp_code: recoveryCodes[2] })).status).toBe(400)
})

test('wrong two-factor codes are counted together, and a correct password does not reset the count', async () => {
  const person = await newPerson()
  const { uri } = await enrol(person)
  const limit = service.config.limits.passwordFailuresPerMinute
  for (let i = 0; i < limit / 2; i++) {
    expect((await signIn(person.email, { totp_code: '000000' })).status).toBe(400)
    expect((await signIn(person.email)).status).toBe(400)
  }
  expect((await signIn(person.email, { totp_code: await codeAt(uri) })).status).toBe(429)
  const { token } = person
  expect((await service.call('authTotpRemove', { token, body: { code: '000000' } })).status).toBe(429)
})

test('setting up two-factor authentication needs the password, removing it needs a code, and its secret is encrypted at rest', async () => {
  const person = await newPerson()
  const { token } = person
  const wrong = { token, body: { current_password: 'not this one' } }
  expect((await service.call('authTotpCreate', wrong)).status).toBe(400)
  expect((await service.call('authTotpConfirm', { token, body: { code: '123456' } })).status).toBe(409)
  const { uri } = await enrol(person)
  const again = { token, body: { current_password: password } }
  expect((await service.call('authTotpCreate', again)).status).toBe(409)
  const [row] = await service.sql<{ totp_sealed: Buffer }>('SELECT totp_sealed FROM users WHERE id = $1', [
    person.id,
  ])
  const { secret } = URI.parse(uri)
  expect(row!.totp_sealed.toString('latin1')).not.toContain(secret.base32)
  expect(row!.totp_sealed.subarray(0, 8).toString('hex')).toBe(service.server.services.secretKey.newest.id)
  expect((await service.call('authTotpRemove', { token, body: { code: '000000' } })).status).toBe(400)
  await service.ok('authTotpRemove', { token, body: { code: await codeAt(uri) } })
  expect((await signIn(person.email)).status).toBe(200)
})

test("an operator can remove a user's two-factor authentication, which ends the user's sessions", async () => {
  const person = await newPerson()
  await enrol(person)
  const target = { token: service.credentials.operator_key, params: { user_id: person.id } }
  await service.ok('adminUserTotpDelete', target)
  expect((await service.call('rootGet', { token: person.token })).status).toBe(401)
  expect((await signIn(person.email)).status).toBe(200)
  expect((await service.call('adminUserTotpDelete', target)).status).toBe(409)
})

test('an organization that requires two-factor authentication refuses sessions without it, but still accepts keys', async () => {
  const organization_id = await addOrganization(service.database)
  const params = { organization_id }
  const owner = await newPerson({ [organization_id]: 'owner' })
  const member = await newPerson({ [organization_id]: 'member' })
  const demand = (token: string, require_totp: boolean) =>
    service.call('organizationUpdate', { token, params, body: { require_totp } })
  const key = await service.ok('organizationKeyCreate', {
    token: owner.token,
    params,
    body: { name: 'ci', role: 'owner' },
  })
  expect(failureOf(await demand(owner.token, true)).slice(0, 2)).toEqual([403, 'totp_enrolment_required'])
  expect((await demand(key.secret, true)).status).toBe(403)
  const { uri } = await enrol(owner)
  expect((await demand(owner.token, true)).body).toMatchObject({ require_totp: true })
  const read = (token: string) => service.call('memberList', { token, params })
  expect(failureOf(await read(member.token)).slice(0, 2)).toEqual([403, 'totp_enrolment_required'])
  expect((await service.ok('organizationList', { token: member.token })).map(({ id }) => id)).toEqual([
    organization_id,
  ])
  expect((await read(key.secret)).status).toBe(200)
  expect((await read(owner.token)).status).toBe(200)
  await enrol(member)
  expect((await read(member.token)).status).toBe(200)
  const totp_code = await codeAt(uri)
  const fresh = await signIn(owner.email, { totp_code })
  expect((await read(fresh.body.access_token)).status).toBe(200)
  expect((await demand(owner.token, false)).status).toBe(200)
})
