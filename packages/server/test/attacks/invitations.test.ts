import { addOrganization, addUser, password, someEmail, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

/** An invitation grants at most the rights that its creator has when it is redeemed. */

let service: TestService
let organization_id: string
let owner: Person
let operator: Person

interface Person {
  id: string
  email: string
  token: string
}

beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.close())
beforeEach(async () => {
  // Codes that no longer work count as failed sign-ins of this address.
  await service.sql('DELETE FROM password_failures')
  organization_id = await addOrganization(service.database)
  owner = await person({ memberOf: { [organization_id]: 'owner' } })
  operator = await person({ isOperator: true })
})

async function person(of: Parameters<typeof addUser>[1]): Promise<Person> {
  const user = await addUser(service.database, of)
  return { ...user, token: await tokenOf(service.database, user) }
}

const codeOf = (inviteUrl: string) => new URLSearchParams(new URL(inviteUrl).hash.slice(1)).get('code')!

/** Creates four links: two by people in a session, two with their keys. Each grants the highest possible right. */
async function makeLinks() {
  const params = { organization_id }
  const soon = new Date(Date.now() + 3600_000).toISOString()
  const ownerKey = await service.ok('organizationKeyCreate', {
    token: owner.token,
    params,
    body: { name: 'owner', role: 'owner', expires_at: soon },
  })
  const operatorKey = await service.ok('adminKeyCreate', {
    token: operator.token,
    body: { name: 'operator', expires_at: soon },
  })
  const byOwner = async (token: string) =>
    codeOf(
      (
        await service.ok('memberCreate', {
          token,
          params,
          body: { email: someEmail('guest'), role: 'owner' },
        })
      ).invite_url,
    )
  const byOperator = async (token: string) =>
    codeOf(
      (await service.ok('adminUserCreate', { token, body: { email: someEmail('guest'), is_operator: true } }))
        .invite_url,
    )
  return {
    ownerKey,
    operatorKey,
    codes: {
      owner: await byOwner(owner.token),
      ownerKey: await byOwner(ownerKey.secret),
      operator: await byOperator(operator.token),
      operatorKey: await byOperator(operatorKey.secret),
    },
  }
}

type Links = Awaited<ReturnType<typeof makeLinks>>
type Maker = keyof Links['codes']

/** Each way in which the creator of a link can lose rights, and whose links stop working. */
const endings: Record<string, { end(links: Links): Promise<unknown>; ends: Maker[] }> = {
  'nothing happens': { end: async () => {}, ends: [] },
  'the owner is removed': {
    end: () =>
      service.ok('memberDelete', { token: owner.token, params: { organization_id, user_id: owner.id } }),
    ends: ['owner', 'ownerKey'],
  },
  'the owner is demoted': {
    end: () =>
      service.ok('memberUpdate', {
        token: owner.token,
        params: { organization_id, user_id: owner.id },
        body: { role: 'admin' },
      }),
    ends: ['owner', 'ownerKey'],
  },
  'the owner is suspended': {
    end: () =>
      service.ok('adminUserUpdate', {
        token: operator.token,
        params: { user_id: owner.id },
        body: { suspended: true },
      }),
    ends: ['owner', 'ownerKey'],
  },
  'the owner’s key is revoked': {
    end: ({ ownerKey }) =>
      service.ok('organizationKeyDelete', {
        token: owner.token,
        params: { organization_id, key_id: ownerKey.id },
      }),
    ends: ['ownerKey'],
  },
  'the keys expire': {
    end: () => service.clock.advance('2 hours'),
    ends: ['ownerKey', 'operatorKey'],
  },
  'the operator loses the role': {
    end: () =>
      service.ok('adminUserUpdate', {
        token: operator.token,
        params: { user_id: operator.id },
        body: { is_operator: false },
      }),
    ends: ['operator', 'operatorKey'],
  },
  'the operator is suspended': {
    end: async () => {
      const token = await tokenOf(service.database, await addUser(service.database, { isOperator: true }))
      await service.ok('adminUserUpdate', {
        token,
        params: { user_id: operator.id },
        body: { suspended: true },
      })
    },
    ends: ['operator', 'operatorKey'],
  },
  'the operator’s key is revoked': {
    end: ({ operatorKey }) =>
      service.ok('adminKeyDelete', { token: operator.token, params: { key_id: operatorKey.id } }),
    ends: ['operatorKey'],
  },
}

for (const [name, { end, ends }] of Object.entries(endings))
  test(`${name}: ${ends.length === 0 ? 'every link works' : `links of ${ends.join(' and ')} stop working`}`, async () => {
    // The last owner and the last operator cannot leave.
    await addUser(service.database, { memberOf: { [organization_id]: 'owner' } })
    const links = await makeLinks()
    await end(links)
    for (const [maker, code] of Object.entries(links.codes)) {
      const hasEnded = ends.includes(maker as Maker)
      const shown = await service.call('authInvitation', { token: null, body: { code } })
      const accepted = await service.call('authAccept', { token: null, body: { code, password } })
      const seen = [shown, accepted].map(({ status, body }) => [status, (body as { code?: string }).code])
      const expected = hasEnded ? [400, 'invalid_grant'] : [200, undefined]
      expect(seen, maker).toEqual([expected, expected])
    }
    await service.clock.reset()
  })

test('a removed owner or operator cannot return with an invitation link they created', async () => {
  await addUser(service.database, { memberOf: { [organization_id]: 'owner' } })
  const { codes } = await makeLinks()
  await endings['the owner is removed']!.end({} as Links)
  await endings['the operator loses the role']!.end({} as Links)
  for (const [{ token }, code] of [
    [owner, codes.owner],
    [operator, codes.operator],
  ] as const)
    expect(await service.call('authAccept', { token, body: { code } })).toMatchObject({ status: 400 })
  expect(
    await service.call('organizationGet', { token: owner.token, params: { organization_id } }),
  ).toMatchObject({ status: 404 })
  expect(await service.call('adminUserList', { token: operator.token })).toMatchObject({ status: 403 })
})

test('an open invitation disappears from the member list when its creator loses the right to invite, and the audit log says why', async () => {
  const second = await person({ memberOf: { [organization_id]: 'owner' } })
  const params = { organization_id }
  const email = someEmail('guest')
  const { user_id } = await service.ok('memberCreate', {
    token: owner.token,
    params,
    body: { email, role: 'viewer' },
  })
  await service.ok('memberUpdate', {
    token: second.token,
    params: { ...params, user_id: owner.id },
    body: { role: 'member' },
  })
  const { items } = await service.ok('memberList', { token: second.token, params })
  expect(items.map((member) => member.email)).not.toContain(email)
  const events = await service.sql<{ actor: string; data: { reason: string } }>(
    `SELECT actor, data FROM events_written WHERE resource_id = $1 AND type = 'member.removed'`,
    [user_id],
  )
  expect(events).toMatchObject([
    {
      actor: `user:${second.id}`,
      data: { email, reason: 'The inviter can no longer make this invitation.' },
    },
  ])
})

test('losing rights in one organization does not affect invitations to another', async () => {
  const elsewhere = await addOrganization(service.database)
  await service.sql(`INSERT INTO memberships (organization_id, user_id, role) VALUES ($1, $2, 'owner')`, [
    elsewhere,
    owner.id,
  ])
  await addUser(service.database, { memberOf: { [organization_id]: 'owner' } })
  const { invite_url } = await service.ok('memberCreate', {
    token: owner.token,
    params: { organization_id: elsewhere },
    body: { email: someEmail('guest'), role: 'viewer' },
  })
  await endings['the owner is removed']!.end({} as Links)
  const body = { code: codeOf(invite_url), password }
  expect(await service.call('authAccept', { token: null, body })).toMatchObject({ status: 200 })
})

test('another owner who repeats an invitation becomes its creator', async () => {
  const second = await person({ memberOf: { [organization_id]: 'owner' } })
  const params = { organization_id }
  const { user_id } = await service.ok('memberCreate', {
    token: owner.token,
    params,
    body: { email: someEmail('guest'), role: 'viewer' },
  })
  const { invite_url } = await service.ok('memberInvite', {
    token: second.token,
    params: { ...params, user_id },
  })
  await endings['the owner is removed']!.end({} as Links)
  const body = { code: codeOf(invite_url), password }
  expect(await service.call('authAccept', { token: null, body })).toMatchObject({ status: 200 })
})

test('an invitation link reveals only for the invited address whether it has an account, and each lookup is rate-limited', async () => {
  const stranger = await addUser(service.database)
  const invited = await addUser(service.database)
  const { invite_url } = await service.ok('memberCreate', {
    token: owner.token,
    params: { organization_id },
    body: { email: invited.email, role: 'viewer' },
  })
  const accept = async (email?: string) => {
    const body = { code: codeOf(invite_url), password, ...(email && { email }) }
    const { status, body: response } = await service.call('authAccept', { token: null, body })
    return [status, (response as { code?: string }).code]
  }
  expect(await accept()).toEqual([409, 'already_exists'])
  expect(await accept(invited.email.toUpperCase())).toEqual([409, 'already_exists'])
  expect(await accept(stranger.email)).toEqual([400, 'invalid_grant'])
  const failures = await service.sql('SELECT FROM password_failures WHERE email = $1', [stranger.email])
  expect(failures).toHaveLength(1)
  // The limit is ten per minute for a client address and an e-mail address, so the eleventh lookup is refused.
  for (let i = 0; i < 9; i++) await accept(stranger.email)
  expect(await accept(stranger.email)).toEqual([429, 'rate_limited'])
  expect(await accept(someEmail())).toEqual([200, undefined])
})
