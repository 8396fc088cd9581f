import {
  addOrganization,
  addUser,
  password,
  someEmail,
  tokenOf,
  tokenOfNew,
} from '@slipway/testing/people.ts'
import { send } from '@slipway/testing/requests.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** An attacker who registers another person's e-mail address gains no rights that are granted to the address later. */

let service: TestService
let squatterOrganization: string
let squatter: string
let victimOrganization: string
let victimOwner: string

beforeAll(async () => {
  service = await startService()
  squatterOrganization = await addOrganization(service.database, 'Squatters')
  squatter = await tokenOfNew(service.database, { memberOf: { [squatterOrganization]: 'owner' } })
  victimOrganization = await addOrganization(service.database, 'Victims')
  victimOwner = await tokenOfNew(service.database, { memberOf: { [victimOrganization]: 'owner' } })
})
afterAll(() => service?.close())

const call = (method: string, path: string, request?: Parameters<typeof send>[3]) =>
  send(service.server, method, path, request)
const codeOf = ({ body }: { body: { invite_url: string } }) =>
  new URLSearchParams(new URL(body.invite_url).hash.slice(1)).get('code')
const inviteTo = (organizationId: string, token: string, email: string) =>
  call('POST', `/organizations/${organizationId}/members`, { token, body: { email, role: 'admin' } })

/** Creates an account for the attacker, with an address that the attacker does not own. */
async function squat(email: string): Promise<string> {
  const invited = await inviteTo(squatterOrganization, squatter, email)
  const accepted = await call('POST', '/auth/accept', { body: { code: codeOf(invited), password } })
  expect(accepted.status).toBe(200)
  return accepted.body.access_token
}

test('an account with an invited address gets no membership without the link', async () => {
  const email = someEmail('cfo')
  const token = await squat(email)
  const invited = await inviteTo(victimOrganization, victimOwner, email)
  expect(invited.body).toMatchObject({ state: 'invited', email })
  expect((await call('GET', '/organizations', { token })).body).toHaveLength(1)
  expect((await call('GET', `/organizations/${victimOrganization}`, { token })).status).toBe(404)
  // The person who holds the link becomes the member, with whatever address the account has.
  const victim = await addUser(service.database)
  const own = await tokenOf(service.database, victim)
  await call('POST', '/auth/accept', { token: own, body: { code: codeOf(invited) } })
  const members = await call('GET', `/organizations/${victimOrganization}/members`, { token: victimOwner })
  expect(members.body.items[0]).toMatchObject({ user_id: victim.id, email: victim.email, state: 'active' })
})

test('the operator role goes to the user who redeems the link, not to the account with the invited address', async () => {
  const email = someEmail('chief')
  const token = await squat(email)
  const operator = service.credentials.operator_key
  const marked = await call('POST', '/admin/users', { token: operator, body: { email, is_operator: true } })
  expect(marked.body).toMatchObject({ state: 'invited', is_operator: true })
  expect((await call('GET', '', { token })).body.caller.is_operator).toBe(false)
  expect((await call('GET', '/admin/users', { token })).status).toBe(403)
  // An owner who invites the same address gets a separate link, which grants membership in one organization.
  const lesser = await inviteTo(squatterOrganization, squatter, someEmail('other'))
  const shown = await call('POST', '/auth/invitation', { body: { code: codeOf(lesser) } })
  expect(shown.body.is_operator).toBe(false)
  const chief = await tokenOfNew(service.database, {})
  await call('POST', '/auth/accept', { token: chief, body: { code: codeOf(marked) } })
  expect((await call('GET', '', { token: chief })).body.caller.is_operator).toBe(true)
})

test('an owner who renews an operator’s invitation gets a link to the membership without the operator role', async () => {
  const email = someEmail('both')
  const body = { email, organization_id: squatterOrganization, role: 'viewer', is_operator: true }
  const both = await call('POST', '/admin/users', { token: service.credentials.operator_key, body })
  const members = `/organizations/${squatterOrganization}/members`
  const { items } = (await call('GET', members, { token: squatter })).body
  const seen = items.find((item: { email: string }) => item.email === email)
  const renewed = await call('POST', `${members}/${seen.user_id}/invite`, { token: squatter })
  const shownBy = async (response: typeof both) =>
    (await call('POST', '/auth/invitation', { body: { code: codeOf(response) } })).body
  expect(await shownBy(renewed)).toMatchObject({ organization_name: 'Squatters', is_operator: false })
  expect(await shownBy(both)).toMatchObject({ organization_name: '', role: '', is_operator: true })
})

test('an invitation does not reveal whether an address has an account', async () => {
  const known = await addUser(service.database)
  const responses = [
    await inviteTo(squatterOrganization, squatter, known.email),
    await inviteTo(squatterOrganization, squatter, someEmail('unknown')),
  ]
  const shapes = responses.map(({ status, body }) => [status, body.state, Object.keys(body)])
  expect(shapes[0]).toEqual(shapes[1])
  expect(responses[0]!.body.user_id).not.toBe(known.id)
})

test('a link never sets the password of an existing account, and such attempts count as failed sign-ins', async () => {
  const known = await addUser(service.database)
  const code = codeOf(await inviteTo(squatterOrganization, squatter, known.email))
  const take = () => call('POST', '/auth/accept', { body: { code, password: 'another password' } })
  expect((await take()).body.code).toBe('already_exists')
  const grant = (word: string) =>
    call('POST', '/auth/token', { body: { grant_type: 'password', email: known.email, password: word } })
  expect((await grant('another password')).body.code).toBe('invalid_grant')
  expect((await grant(password)).status).toBe(200)
  const limit = service.config.limits.passwordFailuresPerMinute
  for (let i = 0; i < limit; i++) await take()
  expect((await take()).body.code).toBe('rate_limited')
  // With another address, the same link creates an account.
  const email = someEmail('mine')
  const mine = await call('POST', '/auth/accept', { body: { code, password, email } })
  expect((await call('GET', '', { token: mine.body.access_token })).body.caller.email).toBe(email)
})

test('if many users redeem one link at the same time, exactly one joins', async () => {
  const code = codeOf(await inviteTo(victimOrganization, victimOwner, someEmail('race')))
  const tokens = await Promise.all(Array.from({ length: 8 }, () => tokenOfNew(service.database, {})))
  const responses = await Promise.all(
    tokens.map((token) => call('POST', '/auth/accept', { token, body: { code } })),
  )
  expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(400)])
})

test('a key or an invalid token cannot accept an invitation', async () => {
  const code = codeOf(await inviteTo(victimOrganization, victimOwner, someEmail('key')))
  const accept = (token?: string) => call('POST', '/auth/accept', { ...(token && { token }), body: { code } })
  expect((await accept(service.credentials.access_key)).status).toBe(403)
  expect((await accept(service.credentials.operator_key)).status).toBe(403)
  expect((await accept('slpa_nobody')).status).toBe(401)
  expect((await accept()).body.details).toMatchObject([{ field: '/password' }])
})
