import { addOrganization, addProject, addUser, someEmail, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** Tests every way of losing a right with every kind of grant. A grant is checked when it is used. */

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.close())

/** An owner who is also an operator creates every kind of grant: in a session, with keys, and with child keys. */
async function grantAll() {
  const { database } = service
  const organization_id = await addOrganization(database)
  const person = await addUser(database, { isOperator: true, memberOf: { [organization_id]: 'owner' } })
  const session = await tokenOf(database, person)
  const project_id = await addProject(service, session, organization_id, 'first')
  const params = { organization_id, project_id }
  // The child keys inherit this limit from their parents.
  const expires_at = new Date(Date.now() + 3600_000).toISOString()

  const organizationKey = (token: string, role: 'owner' | 'viewer', more = {}) =>
    service.ok('organizationKeyCreate', { token, params, body: { name: role, role, ...more } })
  const projectKey = (token: string, more = {}) =>
    service.ok('accessKeyCreate', { token, params, body: { name: 'write', role: 'write', ...more } })
  const operatorKey = (token: string, more = {}) =>
    service.ok('adminKeyCreate', { token, body: { name: 'operator', ...more } })
  const ofOrganization = await organizationKey(session, 'owner', { expires_at })
  const ofOperator = await operatorKey(session, { expires_at })
  const keys = {
    organizationKey: ofOrganization,
    viewerKey: await organizationKey(session, 'viewer', { expires_at }),
    projectKey: await projectKey(session, { expires_at }),
    operatorKey: ofOperator,
    childOrganizationKey: await organizationKey(ofOrganization.secret, 'owner'),
    childProjectKey: await projectKey(ofOrganization.secret),
    childOperatorKey: await operatorKey(ofOperator.secret),
  }

  const codeOf = ({ invite_url }: { invite_url: string }) => invite_url.split('#code=')[1]!
  const asOwner = async (token: string) =>
    codeOf(await service.ok('memberCreate', { token, params, body: { email: someEmail(), role: 'owner' } }))
  const asOperator = async (token: string) =>
    codeOf(await service.ok('adminUserCreate', { token, body: { email: someEmail(), is_operator: true } }))
  const invitations = {
    invitation: await asOwner(session),
    invitationOfKey: await asOwner(keys.organizationKey.secret),
    invitationOfChild: await asOwner(keys.childOrganizationKey.secret),
    operatorInvitation: await asOperator(session),
    operatorInvitationOfKey: await asOperator(keys.operatorKey.secret),
    operatorInvitationOfChild: await asOperator(keys.childOperatorKey.secret),
  }
  // The last owner cannot leave.
  const other = await addUser(database, { memberOf: { [organization_id]: 'owner' } })
  return { person, session, params, keys, invitations, owner: await tokenOf(database, other) }
}
type Grants = Awaited<ReturnType<typeof grantAll>>

/** Returns a use of each grant. A use returns whether it is allowed, and changes nothing. */
function uses({ session, params, keys, invitations }: Grants) {
  // Access is checked before the request is validated, so an invalid request shows whether the caller has the owner's
  // rights.
  const asOwner = (token: string) => async () => {
    const path = `/v0.1/organizations/${params.organization_id}/members?not_a_parameter=1`
    return (await service.request('POST', path, { token, body: '{}' })).status === 400
  }
  const asViewer = (token: string) => async () =>
    (await service.call('memberList', { token, params })).status === 200
  const inProject = (token: string) => async () =>
    (await service.call('vmList', { token, params })).status === 200
  const asOperator = (token: string) => async () =>
    (await service.call('adminCapacityList', { token })).status === 200
  const shown = (code: string) => async () =>
    (await service.call('authInvitation', { token: null, body: { code } })).status === 200
  return {
    ownerSession: asOwner(session),
    operatorSession: asOperator(session),
    organizationKey: asOwner(keys.organizationKey.secret),
    viewerKey: asViewer(keys.viewerKey.secret),
    projectKey: inProject(keys.projectKey.secret),
    operatorKey: asOperator(keys.operatorKey.secret),
    childOrganizationKey: asOwner(keys.childOrganizationKey.secret),
    childProjectKey: inProject(keys.childProjectKey.secret),
    childOperatorKey: asOperator(keys.childOperatorKey.secret),
    invitation: shown(invitations.invitation),
    invitationOfKey: shown(invitations.invitationOfKey),
    invitationOfChild: shown(invitations.invitationOfChild),
    operatorInvitation: shown(invitations.operatorInvitation),
    operatorInvitationOfKey: shown(invitations.operatorInvitationOfKey),
    operatorInvitationOfChild: shown(invitations.operatorInvitationOfChild),
  }
}
type Grant = keyof ReturnType<typeof uses>

const sessions: Grant[] = ['ownerSession', 'operatorSession']
const projectKeys: Grant[] = ['projectKey', 'childProjectKey']
const ownerInvitations: Grant[] = ['invitation', 'invitationOfKey', 'invitationOfChild']
const operatorGrants: Grant[] = [
  ...(['operatorSession', 'operatorKey', 'childOperatorKey'] as const),
  ...(['operatorInvitation', 'operatorInvitationOfKey', 'operatorInvitationOfChild'] as const),
]
const ownerGrants: Grant[] = ['ownerSession', 'organizationKey', 'childOrganizationKey', ...ownerInvitations]
const everything: Grant[] = [...ownerGrants, 'viewerKey', ...projectKeys, ...operatorGrants]

const removal =
  (query: object) =>
  ({ owner, person, params }: Grants) =>
    service.ok('memberDelete', { token: owner, params: { ...params, user_id: person.id }, query })
const demotion =
  (query: object) =>
  ({ owner, person, params }: Grants) =>
    service.ok('memberUpdate', {
      token: owner,
      params: { ...params, user_id: person.id },
      query,
      body: { role: 'viewer' },
    })
const userChange =
  (body: { suspended?: boolean; is_operator?: false }) =>
  ({ person }: Grants) =>
    service.ok('adminUserUpdate', {
      token: service.credentials.operator_key,
      params: { user_id: person.id },
      body,
    })
const organizationKeyRevocation =
  (query: object) =>
  ({ owner, params, keys }: Grants) =>
    service.ok('organizationKeyDelete', {
      token: owner,
      params: { ...params, key_id: keys.organizationKey.id },
      query,
    })
/** Moves the clock, and clears the cache of callers, which uses the clock of the process instead. */
const afterTime = (interval: string) => async () => {
  await service.clock.advance(interval)
  service.server.services.signals.send('access')
}

const endings: Record<string, { end(given: Grants): Promise<unknown>; ends: Grant[] }> = {
  nothing: { end: async () => {}, ends: [] },
  removal: { end: removal({}), ends: [...ownerGrants, 'viewerKey'] },
  'removal that revokes keys': {
    end: removal({ revoke_keys: true }),
    ends: [...ownerGrants, 'viewerKey', ...projectKeys],
  },
  demotion: { end: demotion({}), ends: ownerGrants },
  'demotion that revokes keys': {
    end: demotion({ revoke_keys: true }),
    ends: [...ownerGrants, ...projectKeys],
  },
  'loss of the operator role': { end: userChange({ is_operator: false }), ends: operatorGrants },
  'suspension of the user': { end: userChange({ suspended: true }), ends: everything },
  'suspension of the organization': {
    end: ({ params }) =>
      service.ok('adminOrganizationUpdate', {
        token: service.credentials.operator_key,
        params,
        body: { suspended: true },
      }),
    ends: ['ownerSession', 'organizationKey', 'childOrganizationKey', 'viewerKey', ...projectKeys],
  },
  'expiry of keys and of the access token': {
    end: afterTime('2 hours'),
    ends: everything.filter((grant) => grant !== 'invitation' && grant !== 'operatorInvitation'),
  },
  'expiry of invitations': { end: afterTime('8 days'), ends: everything },
  'revocation of an organization’s key': {
    end: organizationKeyRevocation({}),
    ends: [
      ...(['organizationKey', 'childOrganizationKey', 'childProjectKey'] as const),
      ...(['invitationOfKey', 'invitationOfChild'] as const),
    ],
  },
  'revocation of an organization’s key that keeps its descendants': {
    end: organizationKeyRevocation({ revoke_descendants: false }),
    ends: ['organizationKey', 'invitationOfKey'],
  },
  'revocation of a child key': {
    end: ({ owner, params, keys }) =>
      service.ok('organizationKeyDelete', {
        token: owner,
        params: { ...params, key_id: keys.childOrganizationKey.id },
      }),
    ends: ['childOrganizationKey', 'invitationOfChild'],
  },
  'revocation of a project’s key': {
    end: ({ owner, params, keys }) =>
      service.ok('accessKeyDelete', { token: owner, params: { ...params, key_id: keys.projectKey.id } }),
    ends: ['projectKey'],
  },
  'revocation of an operator key': {
    end: ({ keys }) =>
      service.ok('adminKeyDelete', {
        token: service.credentials.operator_key,
        params: { key_id: keys.operatorKey.id },
      }),
    ends: [
      ...(['operatorKey', 'childOperatorKey'] as const),
      ...(['operatorInvitationOfKey', 'operatorInvitationOfChild'] as const),
    ],
  },
  'revocation of the session': {
    end: async ({ session: token }) => {
      const { items } = await service.ok('authSessionList', { token })
      const session_id = items.find(({ is_current }) => is_current)!.id
      await service.ok('authSessionDelete', { token, params: { session_id } })
    },
    ends: sessions,
  },
}

for (const [name, { end, ends }] of Object.entries(endings))
  test(`${name} ends ${ends.length} of ${everything.length} grants and leaves the others valid`, async () => {
    await service.clock.reset()
    // Codes that no longer work count as failed sign-ins.
    await service.sql('DELETE FROM password_failures')
    const given = await grantAll()
    await end(given)
    const found: Grant[] = []
    for (const [grant, isAllowed] of Object.entries(uses(given)))
      if (!(await isAllowed())) found.push(grant as Grant)
    await service.clock.reset()
    expect(found.toSorted()).toEqual(ends.toSorted())
  })

test('every kind of grant is in the matrix', async () => {
  expect(everything.toSorted()).toEqual(Object.keys(uses(await grantAll())).toSorted())
})
