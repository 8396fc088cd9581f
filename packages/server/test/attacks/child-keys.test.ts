import type { AccessKey, Role } from '@slipway/contract'
import { eventually } from '@slipway/testing/eventually.ts'
import { addOrganization, addProject, addUser, ownerToken, tokenOf } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isBlockInside } from '../../src/domain/address-blocks.ts'

/** A key created by another key never has more rights than its parent, and is revoked with it. */

let service: TestService
let owner: string
beforeAll(async () => {
  service = await startService((config) => {
    config.server.trustedProxies = ['127.0.0.1']
  })
  owner = await ownerToken(service)
})
afterAll(() => service?.close())

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const fromOffice = { 'x-forwarded-for': '203.0.113.5' }
const limits = { expires_at: inDays(10), allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'] }

type Created = AccessKey & { secret: string; code?: string; details?: { field: string }[] }

/** Creates a key with a credential, from an address that the limits allow. */
type Create = (token: string, more?: object) => Promise<{ status: number; body: Created }>
const organizationKey =
  (role: Role): Create =>
  (token, more = {}) =>
    service.call('organizationKeyCreate', {
      token,
      headers: fromOffice,
      body: { name: role, role, ...more },
    })
const projectKey: Create = (token, more = {}) =>
  service.call('accessKeyCreate', {
    token,
    headers: fromOffice,
    body: { name: 'child', role: 'write', ...more } as { name: string; role: 'write' },
  })
const operatorKey: Create = (token, more = {}) =>
  service.call('adminKeyCreate', { token, headers: fromOffice, body: { name: 'child', ...more } })

const works = async (secret: string) =>
  (await service.call('rootGet', { token: secret, headers: fromOffice })).status === 200

/** Each kind of parent key, with the kind of child key that it can create. */
const families: Record<string, { parent: Create; maker: () => string; child: Create }> = {
  'an organization’s key and its child in the organization': {
    parent: organizationKey('admin'),
    maker: () => owner,
    child: organizationKey('admin'),
  },
  'an organization’s key and its child in a project': {
    parent: organizationKey('admin'),
    maker: () => owner,
    child: projectKey,
  },
  'an operator key and its child': {
    parent: operatorKey,
    maker: () => service.credentials.operator_key,
    child: operatorKey,
  },
}

for (const [name, { parent: createParent, maker, child: createChild }] of Object.entries(families))
  test(`${name}: the child key gets the limits of its parent and cannot exceed them`, async () => {
    const parent = (await createParent(maker(), limits)).body
    const child = (await createChild(parent.secret)).body
    expect(child).toMatchObject({ ...limits, parent_id: parent.id, created_by: parent.created_by })
    const narrower = { expires_at: inDays(1), allowed_cidrs: ['203.0.113.5', '2001:db8:1::/48'] }
    expect((await createChild(parent.secret, narrower)).body).toMatchObject(narrower)

    for (const [wider, field] of [
      [{ expires_at: inDays(11) }, '/expires_at'],
      [{ allowed_cidrs: [] }, '/allowed_cidrs'],
      [{ allowed_cidrs: ['203.0.113.5', '203.0.112.0/23'] }, '/allowed_cidrs/1'],
      [{ allowed_cidrs: ['::/0'] }, '/allowed_cidrs/0'],
    ] as const) {
      const { status, body } = await createChild(parent.secret, wider)
      expect([status, body.code, body.details?.[0]?.field]).toEqual([400, 'invalid_argument', field])
    }
  })

test('a child key cannot have a higher role than its parent', async () => {
  const parent = (await organizationKey('admin')(owner)).body
  const { status, body } = await organizationKey('owner')(parent.secret)
  expect([status, body.details?.[0]?.field]).toEqual([400, '/role'])
  expect((await organizationKey('viewer')(parent.secret)).status).toBe(200)
})

test('a key of one organization cannot create a key in another', async () => {
  const elsewhere = await addOrganization(service.database, 'Elsewhere')
  const theirs = await tokenOf(
    service.database,
    await addUser(service.database, { memberOf: { [elsewhere]: 'owner' } }),
  )
  const project_id = await addProject(service, theirs, elsewhere, 'theirs')
  const { secret: token } = (await organizationKey('owner')(owner)).body
  const body = { name: 'child', role: 'read' as const }
  const inProject = await service.call('accessKeyCreate', { token, params: { project_id }, body })
  const inOrganization = await service.call('organizationKeyCreate', {
    token,
    params: { organization_id: elsewhere },
    body: { name: 'child', role: 'viewer' },
  })
  expect([inProject.status, inOrganization.status]).toEqual([404, 404])
})

test('a key created by a signed-in user has no parent and no inherited limits', async () => {
  const { body } = await projectKey(owner)
  expect(body).toMatchObject({ parent_id: '', expires_at: '', allowed_cidrs: [] })
})

/** A key, its child, and two children of the child: one for the organization, one for a project. */
async function makeGenerations() {
  const create = organizationKey('owner')
  const parent = (await create(owner)).body
  const child = (await create(parent.secret)).body
  const grandchild = (await create(child.secret)).body
  const ofProject = (await projectKey(child.secret)).body
  return { parent, child, grandchild, ofProject }
}
const revoke = (key_id: string, query = {}) =>
  service.ok('organizationKeyDelete', { token: owner, params: { key_id }, query })
const worksEach = async (keys: { secret: string }[]) => Promise.all(keys.map(({ secret }) => works(secret)))

test('revoking a key revokes all its descendants, and the response and the audit log list them', async () => {
  const { parent, child, grandchild, ofProject } = await makeGenerations()
  const other = (await organizationKey('owner')(owner)).body
  const { revoked_descendants } = await revoke(parent.id)
  const ids = [child.id, grandchild.id, ofProject.id]
  expect(revoked_descendants.toSorted()).toEqual(ids.toSorted())
  expect(await worksEach([parent, child, grandchild, ofProject, other])).toEqual([
    ...[false, false, false, false],
    true,
  ])
  const { items } = await service.ok('adminEventList', {
    token: service.credentials.operator_key,
    query: { type: 'access_key.revoked', limit: '500' },
  })
  expect(items.map(({ resource_id }) => resource_id)).toEqual(expect.arrayContaining([parent.id, ...ids]))
})

test('descendants can be kept when a key is revoked, and are still revoked later with a higher ancestor', async () => {
  const { parent, child, grandchild, ofProject } = await makeGenerations()
  expect(await revoke(child.id, { revoke_descendants: false })).toEqual({ revoked_descendants: [] })
  expect(await worksEach([parent, child, grandchild, ofProject])).toEqual([true, false, true, true])
  const { revoked_descendants } = await revoke(parent.id)
  expect(revoked_descendants.toSorted()).toEqual([grandchild.id, ofProject.id].toSorted())
  expect(await worksEach([grandchild, ofProject])).toEqual([false, false])
})

test('a child key that is created while its parent is being revoked is revoked too', async () => {
  const parent = (await organizationKey('admin')(owner)).body
  const isWaiting = (text: string) =>
    eventually(async () => {
      const found = await service.sql(
        `SELECT query FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE $1`,
        [`%${text}%`],
      )
      return found.length > 0
    })
  // The creation cannot commit while another transaction holds a lock on the events table.
  const blocker = new pg.Client({ connectionString: service.databaseUrl })
  await blocker.connect()
  await blocker.query('BEGIN')
  await blocker.query('LOCK TABLE events_pending IN SHARE ROW EXCLUSIVE MODE')
  const creation = projectKey(parent.secret)
  await isWaiting('INTO events_pending')
  const revocation = revoke(parent.id)
  await isWaiting('UPDATE access_keys SET revoked_at')
  await blocker.end()
  const child = (await creation).body
  expect((await revocation).revoked_descendants).toEqual([child.id])
  expect(await works(child.secret)).toBe(false)
})

test('an admin, signed in or using a key, can neither create nor revoke a key that has the owner role', async () => {
  const { organization_id } = service.credentials
  const user = await addUser(service.database, { memberOf: { [organization_id]: 'admin' } })
  const admin = await tokenOf(service.database, user)
  const adminKey = (await organizationKey('admin')(admin)).body
  const ofOwner = (await organizationKey('owner')(owner)).body
  const params = { key_id: ofOwner.id }
  for (const token of [admin, adminKey.secret]) {
    const { status, body } = await service.call('organizationKeyDelete', { token, params })
    expect([status, (body as unknown as { code: string }).code]).toEqual([403, 'permission_denied'])
  }
  expect((await organizationKey('owner')(admin)).status).toBe(403)
  expect(await works(ofOwner.secret)).toBe(true)
  const own = await service.call('organizationKeyDelete', {
    token: admin,
    params: { key_id: adminKey.id },
  })
  expect(own.status).toBe(200)
})

test('an address block is inside another if all its addresses are, even if only one of them is written as IPv6', () => {
  for (const [inner, outer, isInside] of [
    ['10.1.0.0/16', '10.0.0.0/8', true],
    ['10.0.0.0/8', '10.1.0.0/16', false],
    ['10.0.0.1', '10.0.0.1/32', true],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8', true],
    ['::ffff:0.0.0.0/96', '0.0.0.0/8', false],
    ['::/0', '0.0.0.0/0', false],
    ['2001:db8::1', '2001:db8::/32', true],
    ['2001:db9::/32', '2001:db8::/32', false],
  ] as const)
    expect([inner, outer, isBlockInside(inner, outer)]).toEqual([inner, outer, isInside])
})
