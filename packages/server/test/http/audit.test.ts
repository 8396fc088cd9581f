import { openStream } from '@slipway/testing/event-stream.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { addKey, addOrganization, addUser, ownerToken, password, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
let operator: string
let projectId: string
beforeAll(async () => {
  service = await startService((config) => {
    config.server.trustedProxies = ['127.0.0.1']
  })
  owner = await ownerToken(service)
  operator = service.credentials.operator_key
  projectId = service.credentials.project_id
})
afterAll(() => service?.close())

const from = (address: string) => ({ 'x-forwarded-for': address })
const signIn = (email: string, word: string, address: string) =>
  service.call('authToken', {
    token: null,
    headers: from(address),
    body: { grant_type: 'password', email, password: word },
  })
const organizationEvents = async (token: string, organization_id: string, type: string) =>
  (await service.ok('organizationEventList', { token, params: { organization_id }, query: { type } })).items

test('the log line of a request contains the address of the client', async () => {
  const root = await service.ok('rootGet', {
    headers: { ...from('203.0.113.9'), 'x-request-id': 'from-nine' },
  })
  expect(root.caller.address).toBe('203.0.113.9')
  const line = await eventually(() =>
    service.logLines.map((text) => JSON.parse(text)).find(({ request }) => request === 'from-nine'),
  )
  expect(line).toMatchObject({ client: '203.0.113.9', status: 200 })
})

test('only admins and operators see the address of the caller in events', async () => {
  const params = { project_id: projectId }
  const { id } = await service.ok('accessKeyCreate', {
    token: owner,
    params,
    headers: from('203.0.113.10'),
    body: { name: 'seen', role: 'read' },
  })
  const organization = service.credentials.organization_id
  const tokens = {
    admin: await tokenOf(
      service.database,
      await addUser(service.database, { memberOf: { [organization]: 'admin' } }),
    ),
    member: await tokenOf(
      service.database,
      await addUser(service.database, { memberOf: { [organization]: 'member' } }),
    ),
    key: (await addKey(service, owner, projectId, 'write')).secret,
  }
  const addressFor = async (token: string) =>
    (await service.ok('eventList', { token, params, query: { resource_id: id } })).items[0]!.client_address
  expect(await addressFor(owner)).toBe('203.0.113.10')
  expect(await addressFor(tokens.admin)).toBe('203.0.113.10')
  expect(await addressFor(tokens.member)).toBe('')
  expect(await addressFor(tokens.key)).toBe('')
  const all = await service.ok('adminEventList', { token: operator, query: { resource_id: id } })
  expect(all.items.at(-1)!.client_address).toBe('203.0.113.10')
})

test('a stream shows client addresses to an admin, and stops showing them when the role is lost', async () => {
  const organization_id = service.credentials.organization_id
  const admin = await addUser(service.database, { memberOf: { [organization_id]: 'admin' } })
  const [shown, hidden] = await Promise.all([
    openStream(service.url, projectId, { token: await tokenOf(service.database, admin) }),
    openStream(service.url, projectId, { token: service.credentials.access_key }),
  ])
  const ofType = (type: string) => (event: { type: string }) => event.type === type
  await addKey(service, owner, projectId, 'read')
  expect((await shown!.next(ofType('access_key.created'))).client_address).toBe('127.0.0.1')
  expect((await hidden!.next(ofType('access_key.created'))).client_address).toBe('')
  const params = { organization_id, user_id: admin.id }
  await service.ok('memberUpdate', { token: owner, params, body: { role: 'viewer' } })
  await eventually(async () => {
    await addKey(service, owner, projectId, 'read')
    return (await shown!.next(ofType('access_key.created'))).client_address === ''
  })
})

test('a failed sign-in is recorded with its address in every organization of the user', async () => {
  const organizations = [await addOrganization(service.database), await addOrganization(service.database)]
  const user = await addUser(service.database, {
    memberOf: { [organizations[0]!]: 'owner', [organizations[1]!]: 'admin' },
  })
  expect((await signIn(user.email, 'a wrong passphrase', '203.0.113.11')).status).toBe(400)
  const token = await tokenOf(service.database, user)
  for (const organization of organizations) {
    const failed = await eventually(async () =>
      (await organizationEvents(token, organization, 'user.sign_in_failed')).at(0),
    )
    expect(failed).toMatchObject({
      resource_id: user.id,
      actor: '',
      client_address: '203.0.113.11',
      data: { reason: 'password' },
    })
  }
})

test('a failed sign-in with an unknown e-mail address is shown to operators, without the entered text', async () => {
  expect((await signIn('my-password@example.com', 'unknown', '203.0.113.12')).status).toBe(400)
  const stranger = await eventually(async () => {
    const query = { type: 'user.sign_in_failed' }
    const { items } = await service.ok('adminEventList', { token: operator, query })
    return items.find(({ client_address }) => client_address === '203.0.113.12')
  })
  expect(stranger.resource_id).toBe('')
  expect(JSON.stringify(stranger)).not.toContain('my-password')
})

test('the reuse of a refresh token is recorded in the organization', async () => {
  const organization = await addOrganization(service.database)
  const user = await addUser(service.database, { memberOf: { [organization]: 'owner' } })
  const session = (await signIn(user.email, password, '203.0.113.13')).body
  const refresh = (refresh_token: string, address: string) =>
    service.call('authToken', {
      token: null,
      headers: from(address),
      body: { grant_type: 'refresh_token', refresh_token },
    })
  const second = (await refresh(session.refresh_token, '203.0.113.13')).body
  await refresh(second.refresh_token, '203.0.113.13')
  expect((await refresh(session.refresh_token, '198.51.100.1')).status).toBe(400)
  const token = await tokenOf(service.database, user)
  const [reused] = await organizationEvents(token, organization, 'user.refresh_token_reused')
  expect(reused).toMatchObject({ resource_id: user.id, client_address: '198.51.100.1' })
})

test('organization events are shown only to admins, without events of projects and other organizations', async () => {
  const organization_id = await addOrganization(service.database)
  const admin = await addUser(service.database, { memberOf: { [organization_id]: 'owner' } })
  const token = await tokenOf(service.database, admin)
  await service.ok('projectCreate', { token, body: { name: 'apart', organization_id } })
  const email = 'invited@example.com'
  const params = { organization_id }
  await service.ok('memberCreate', { token, params, body: { email, role: 'member' } })
  const { items } = await service.ok('organizationEventList', { token, params })
  expect(items.map(({ type }) => type)).toContain('member.invited')
  expect(items.map(({ type }) => type)).not.toContain('network.created')
  const member = await tokenOf(
    service.database,
    await addUser(service.database, { memberOf: { [organization_id]: 'member' } }),
  )
  expect((await service.call('organizationEventList', { token: member, params })).status).toBe(403)
  expect((await service.call('organizationEventList', { token: owner, params })).status).toBe(404)
})

test('operators see which tenant an event belongs to and can filter by tenant, and their access is recorded', async () => {
  const organization_id = service.credentials.organization_id
  const other = await addOrganization(service.database, 'Others')
  const listed = async (query: Record<string, string>) =>
    (await service.ok('adminEventList', { token: operator, query: { limit: '500', ...query } })).items
  await addKey(service, owner, projectId, 'write')
  const body = { email: 'newcomer@example.com', role: 'viewer' }
  await service.ok('memberCreate', { token: owner, params: { organization_id }, body })
  const ofProject = await listed({ project_id: projectId })
  expect(ofProject.length).toBeGreaterThan(0)
  expect(new Set(ofProject.map(({ project_id }) => project_id))).toEqual(new Set([projectId]))
  const ofOrganization = await listed({ organization_id })
  expect(ofOrganization.length).toBeGreaterThan(0)
  for (const event of ofOrganization) expect(event).toMatchObject({ organization_id, project_id: '' })
  // A response without resources of the tenant shows nothing of it.
  expect(await listed({ organization_id: other })).toEqual([])
  const reads = await listed({ type: 'operator.read' })
  const tenants = reads.map(({ resource_id }) => resource_id)
  expect(tenants).toContain(organization_id)
  expect(tenants).not.toContain(other)
})

test('reading the audit log from a position returns every event once, even during concurrent writes', async () => {
  const start = (await service.ok('adminEventList', { token: operator, query: { limit: 1 } })).items[0]!
  const writing = Array.from({ length: 30 }, () => addKey(service, owner, projectId, 'read'))
  const seen: string[] = []
  let after = start.position
  const readOn = async () => {
    const { items } = await service.ok('adminEventList', { token: operator, query: { after, limit: 7 } })
    for (const event of items) {
      expect(event.position).toBeGreaterThan(after)
      after = event.position
      seen.push(event.resource_id)
    }
    return items.length
  }
  for (let i = 0; i < 5; i++) await readOn()
  const ids = (await Promise.all(writing)).map(({ id }) => id)
  while ((await readOn()) > 0);
  expect(seen.filter((id) => ids.includes(id)).toSorted()).toEqual(ids.toSorted())
})

test('the audit log cannot be read from a position whose following events have been deleted', async () => {
  await service.sql('UPDATE event_counter SET pruned_position = 5')
  const read = (after: number) => service.call('adminEventList', { token: operator, query: { after } })
  expect((await read(4)).status).toBe(400)
  expect((await read(5)).status).toBe(200)
  expect((await read(0)).status).toBe(200)
  await service.sql('UPDATE event_counter SET pruned_position = 0')
})

test('a name with control characters or direction marks is rejected with an explanation', async () => {
  const params = { project_id: projectId }
  for (const name of ['a\u001b[2Jb', 'a\u202eb', 'a\nb', 'a\u009bb', 'a\u2066b']) {
    const body = { name, role: 'read' }
    const { status, body: error } = await service.call('accessKeyCreate', { token: owner, params, body })
    expect([status, JSON.stringify(error)]).toEqual([400, expect.stringContaining('control characters')])
  }
  const body = { name: 'Schlüssel für 東京 🚀', role: 'read' }
  expect((await service.ok('accessKeyCreate', { token: owner, params, body })).name).toBe(body.name)
})
