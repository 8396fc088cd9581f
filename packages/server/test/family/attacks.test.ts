import { addOrganization, addProject, addUser, ownerToken, tokenOf } from '@slipway/testing/people.ts'
import { freshName } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { familyClient, goTime, pythonTime, type SigningKey } from './client.ts'

/** Tests signing keys, and requests that must be refused. */

let service: TestService
let owner: string
let key: SigningKey
let send: ReturnType<typeof familyClient>
let project: string
let instances: string

beforeAll(async () => {
  service = await startService((config) => {
    config.server.familyApi = true
    config.limits.burst = 100
    config.limits.requestsPerSecond = 50
    config.limits.organizationInFlight = 2
    config.limits.organizationQueue = 0
  })
  owner = await ownerToken(service)
  key = await newKey('write')
  send = familyClient(service, key)
  project = `/v1/projects/${service.credentials.project_id}`
  instances = `${project}/compute/vms/instances`
})
afterAll(() => service?.close())

const newKey = (role: 'read' | 'write', more: object = {}): Promise<SigningKey> =>
  service.ok('accessKeyCreate', { token: owner, body: { name: role, role, kind: 'signing', ...more } })
const vmBody = (more: object = {}) => ({
  ...{ name: freshName('vm'), type: 'a100.1x', location: 'us-east1-a', image: 'ubuntu22.04:latest' },
  ssh_public_key: sshKey,
  ...more,
})
const refusal = { status: 401, body: { code: 'unauthenticated', error_id: expect.any(String) } }

test('a signing key is listed with its kind and id; its secret is shown once, stored encrypted and never logged', async () => {
  const created = await newKey('read')
  expect(created).toMatchObject({ kind: 'signing', prefix: expect.stringMatching(/^slp_\w{8}$/) })
  expect(Buffer.from(created.secret, 'base64url')).toHaveLength(32)
  expect((await familyClient(service, created)('GET', '/v1/locations')).status).toBe(200)
  const { items } = await service.ok('accessKeyList')
  expect(items.find(({ id }) => id === created.id)).toMatchObject({ kind: 'signing', role: 'read' })
  expect(items.some(({ kind }) => kind === 'bearer')).toBe(true)
  const rows = JSON.stringify(await service.sql('SELECT * FROM access_keys, events, events_pending'))
  const seen = [JSON.stringify(items), service.logLines.join(''), rows].join('')
  expect(seen).not.toContain(created.secret)
  expect(seen).not.toContain(Buffer.from(created.secret, 'base64url').toString('hex'))
  expect(seen).not.toMatch(/slp_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}/)
})

test('the secret of a signing key is not a bearer token, and a bearer key cannot sign', async () => {
  for (const token of [key.secret, `${key.prefix}_${key.secret}`])
    expect((await service.call('rootGet', { token })).status).toBe(401)
  const bearer = await service.ok('accessKeyCreate', { token: owner, body: { name: 'b', role: 'write' } })
  expect(await familyClient(service, bearer)('GET', '/v1/locations')).toMatchObject(refusal)
  const response = await service.call('rootGet', { token: bearer.secret })
  expect(response.status).toBe(200)
  const plain = await send('GET', '/v1/locations', { headers: { authorization: `Bearer ${bearer.secret}` } })
  expect(plain).toMatchObject(refusal)
})

test('a request is refused with a wrong signature, an unknown key, or a time more than 5 minutes away', async () => {
  const other = await newKey('write')
  const wrong = familyClient(service, { ...key, secret: other.secret })
  expect(await wrong('GET', '/v1/locations')).toMatchObject(refusal)
  const unknown = familyClient(service, { ...key, prefix: 'slp_00000000' })
  expect(await unknown('GET', '/v1/locations')).toMatchObject(refusal)
  for (const seconds of [-310, 310])
    expect(
      await send('GET', '/v1/locations', { timestamp: goTime(Date.now() + seconds * 1000) }),
    ).toMatchObject(refusal)
  for (const timestamp of [goTime(Date.now() - 290_000), pythonTime(Date.now() + 290_000)])
    expect(await send('GET', '/v1/locations', { timestamp })).toMatchObject({ status: 200 })
})

test('moving the clock of the service does not change when signatures are valid', async () => {
  await service.clock.advance('6 minutes')
  expect((await send('GET', '/v1/locations')).status).toBe(200)
  await service.clock.reset()
})

test('a query may be signed with or without escapes, but not if it could then be read as a different query', async () => {
  const path = `${instances}?names=a,b%20c&limit=5`
  expect((await send('GET', path, { signedQuery: 'limit=5&names=a%2Cb+c' })).status).toBe(200)
  expect((await send('GET', path, { signedQuery: 'limit=5&names=a,b c' })).status).toBe(200)
  expect(await send('GET', path, { signedQuery: 'limit=6&names=a,b c' })).toMatchObject(refusal)
  const smuggled = `${instances}?limit=5%26names%3Da`
  expect(await send('GET', smuggled, { signedQuery: 'limit=5&names=a' })).toMatchObject(refusal)
})

test('an identical request gets the first response; a different body with the same signature is a new request', async () => {
  const timestamp = goTime()
  const body = vmBody()
  const first = await send('POST', instances, { body, timestamp })
  expect(first.status).toBe(200)
  expect((await send('POST', instances, { body, timestamp })).body).toEqual(first.body)
  const other = await send('POST', instances, { body: vmBody(), timestamp })
  expect(other.status).toBe(200)
  expect(other.body.operation.operation_id).not.toBe(first.body.operation.operation_id)
  expect(await send('POST', instances, { body })).toMatchObject({
    status: 409,
    body: { code: 'already_exists' },
  })
})

test('a request that reached a proxy without TLS is refused', async () => {
  const other = await service.another((config) => {
    config.server.familyApi = true
    config.server.trustedProxies = ['127.0.0.1']
  })
  const behindProxy = (protocol: string) =>
    familyClient(other, key)('GET', '/v1/locations', {
      headers: { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': protocol },
    })
  expect(await behindProxy('http')).toMatchObject({ status: 403, body: { code: 'permission_denied' } })
  expect(await behindProxy('https')).toMatchObject({ status: 200 })
})

test('a key sees no data of another tenant', async () => {
  const organizationId = await addOrganization(service.database)
  const user = await addUser(service.database, { memberOf: { [organizationId]: 'owner' } })
  const token = await tokenOf(service.database, user)
  const projectId = await addProject(service, token, organizationId, 'theirs')
  const theirs = `/v1/projects/${projectId}`
  for (const path of [
    'compute/vms/instances',
    'storage/disks',
    'networking/vpc-networks',
    'quotas',
    'networking/ib-networks',
  ])
    expect(await send('GET', `${theirs}/${path}`)).toMatchObject({ status: 404, body: { code: 'not_found' } })
  expect(await send('POST', `${theirs}/compute/vms/instances`, { body: vmBody() })).toMatchObject({
    status: 404,
  })
  const network = await send('POST', `${project}/networking/vpc-networks`, {
    body: { name: 'mine', cidr: '10.60.0.0/16' },
  })
  const { operation } = (
    await send('DELETE', `${project}/networking/vpc-networks/${network.body.network.id}`)
  ).body
  const key = await service.ok('accessKeyCreate', {
    ...{ token, params: { project_id: projectId } },
    body: { name: 'k', role: 'write', kind: 'signing' },
  })
  const them = familyClient(service, key)
  for (const at of [project, theirs])
    expect(
      await them('GET', `${at}/networking/vpc-networks/operations/${operation.operation_id}`),
    ).toMatchObject({ status: 404 })
})

test('ids in paths cannot lead to other paths of the service', async () => {
  for (const path of [
    `${project}/compute/vms/instances/%2e%2e`,
    `${project}/storage/disks/..%2f..%2faccess-keys`,
    '/v1/projects/%2e%2e/quotas',
    `${project}/storage/disks/x%0aGET`,
  ])
    expect((await send('GET', path)).status, path).toBeOneOf([401, 404])
  const put = '/v1/organizations/projects?project_id=..'
  expect(await send('PUT', put, { body: { name: 'x' } })).toMatchObject({ status: 404 })
})

test('a revoked key and an expired key stop working', async () => {
  const revoked = await newKey('read')
  const works = async (key: SigningKey) => (await familyClient(service, key)('GET', '/v1/locations')).status
  expect(await works(revoked)).toBe(200)
  await service.ok('accessKeyDelete', { token: owner, params: { key_id: revoked.id } })
  expect(await works(revoked)).toBe(401)
  const [{ at }] = (await service.sql<{ at: Date }>(`SELECT slipway_now() + interval '5 minutes' AS at`)) as [
    { at: Date },
  ]
  const expiring = await newKey('read', { expires_at: at.toISOString() })
  expect(await works(expiring)).toBe(200)
  await service.clock.advance('6 minutes')
  await expect.poll(() => works(expiring)).toBe(401)
  await service.clock.reset()
  const elsewhere = await newKey('read', { allowed_cidrs: ['192.0.2.0/24'] })
  expect(await works(elsewhere)).toBe(401)
})

test('a viewer’s key can read, but not change anything', async () => {
  const read = familyClient(service, await newKey('read'))
  expect((await read('GET', instances)).status).toBe(200)
  const refused = { status: 403, body: { code: 'permission_denied' } }
  expect(await read('POST', instances, { body: vmBody() })).toMatchObject(refused)
  expect(await read('DELETE', `${project}/networking/vpc-networks/${key.id}`)).toMatchObject(refused)
})

test('a viewer’s key cannot confirm the address of a VM', async () => {
  const { operation } = (await send('POST', instances, { body: vmBody() })).body
  const network_interfaces = [{ ips: [{ public_ipv4: { id: '', type: 'dynamic' } }] }]
  const body = { action: 'UPDATE', network_interfaces }
  const path = `${instances}/${operation.metadata.id}`
  const read = familyClient(service, await newKey('read'))
  expect(await read('PATCH', path, { body })).toMatchObject({ status: 403 })
  await service.ended(operation.operation_id)
  expect(await send('PATCH', path, { body })).toMatchObject({
    status: 200,
    body: { operation: { state: 'SUCCEEDED', result: { id: operation.metadata.id } } },
  })
})

test('a signing key has at most the role and limits of the key that creates it', async () => {
  const body = { name: 'parent', role: 'admin', expires_at: '2099-01-01T00:00:00.000Z' }
  const parent = await service.ok('organizationKeyCreate', { token: owner, body })
  const create = (more: object) =>
    service.call('organizationKeyCreate', {
      token: parent.secret,
      body: { name: 'child', kind: 'signing', ...more },
    })
  expect((await create({ role: 'owner' })).status).toBe(400)
  expect((await create({ role: 'admin', expires_at: '2100-01-01T00:00:00.000Z' })).status).toBe(400)
  const child = await create({ role: 'viewer' })
  expect(child.body).toMatchObject({ expires_at: body.expires_at, parent_id: parent.id, kind: 'signing' })
})

test('the key of a suspended organization is refused', async () => {
  const organizationId = await addOrganization(service.database)
  const { operator_key: operator } = service.credentials
  const user = await addUser(service.database, { memberOf: { [organizationId]: 'owner' } })
  const token = await tokenOf(service.database, user)
  const body = { name: 'k', role: 'owner', kind: 'signing' }
  const params = { organization_id: organizationId }
  const theirs = familyClient(service, await service.ok('organizationKeyCreate', { token, params, body }))
  expect((await theirs('GET', '/v1/organizations/projects')).status).toBe(200)
  await service.ok('adminOrganizationUpdate', { token: operator, params, body: { suspended: true } })
  await expect
    .poll(() => theirs('GET', '/v1/organizations/projects'))
    .toMatchObject({ status: 403, body: { code: 'suspended' } })
})

test('huge headers, bodies that are not objects and unknown paths get errors of the same format', async () => {
  const shape = { code: expect.any(String), message: expect.any(String) }
  const huge = await send('GET', '/v1/locations', { headers: { 'x-crusoe-timestamp': 'x'.repeat(20_000) } })
  expect(huge).toMatchObject({ status: 400, body: shape })
  const long = await send('GET', '/v1/locations', { headers: { 'x-crusoe-timestamp': '2'.repeat(10_000) } })
  expect(long).toMatchObject(refusal)
  for (const body of [[], 'text', null, 7])
    expect(await send('POST', instances, { body })).toMatchObject({ status: 400, body: shape })
  for (const body of [
    { network_interfaces: [{ ips: [{ public_ipv4: { type: { a: 1 } } }] }] },
    { network_interfaces: 'x', name: 7 },
    { disks: [null, 'x'], image: ['x'], reservation_specification: 'x' },
    { __proto__: { name: 'x' }, name: 'constructor' },
  ])
    expect(await send('POST', instances, { body })).toMatchObject({ status: 400, body: shape })
  expect(await send('GET', `${project}/networking/ib-partitions/${key.id}`)).toMatchObject({
    status: 404,
    body: shape,
  })
})

test('reads of one VM or one rule are never rate-limited, but other requests are', async () => {
  const { operation } = (await send('POST', instances, { body: vmBody() })).body
  const path = `${instances}/${operation.metadata.id}`
  const rules = `${project}/networking/vpc-firewall-rules`
  const [rule] = (await send('GET', rules)).body.items
  const paths = Array.from({ length: 150 }, (_, n) => (n % 2 ? path : `${rules}/${rule.id}`))
  const statuses = await Promise.all(paths.map(async (each) => (await send('GET', each)).status))
  expect(new Set(statuses)).toEqual(new Set([200]))
  const lists = await Promise.all(
    Array.from({ length: 150 }, async () => (await send('GET', instances)).status),
  )
  expect(new Set(lists)).toEqual(new Set([200, 429]))
  expect((await send('GET', path)).status).toBe(200)
})

test('without the setting family_api, the compatible API does not exist and signing keys cannot be created', async () => {
  const other = await service.another((config) => {
    config.server.familyApi = false
  })
  expect((await familyClient(other, key)('GET', '/v1/locations')).status).toBe(404)
  const response = await fetch(`${other.url}/v0.1/projects/${service.credentials.project_id}/access-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${owner}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'k', role: 'read', kind: 'signing' }),
  })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ details: [{ field: '/kind' }] })
})
