import { addOrganization, addUser, tokenOf } from '@slipway/testing/people.ts'
import { send } from '@slipway/testing/requests.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'

let service: TestService
const call = (method: string, path: string, request?: Parameters<typeof send>[3]) =>
  send(service.server, method, path, request)
let organizationId: string
let admin: string

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  await service?.close()
})
beforeEach(async () => {
  organizationId = await addOrganization(service.database)
  admin = await tokenWith('admin')
})

async function tokenWith(role: 'viewer' | 'member' | 'admin', id = organizationId): Promise<string> {
  const user = await addUser(service.database, { memberOf: { [id]: role } })
  return tokenOf(service.database, user)
}
const create = (name: string, headers: Record<string, string> = {}) =>
  call('POST', '/projects', { token: admin, body: { name, organization_id: organizationId }, headers })
const namesIn = async () =>
  (await call('GET', '/projects', { token: admin })).body.map(({ name }: { name: string }) => name)
const rows = async (text: string, ...values: unknown[]) =>
  (await service.database.query({ text, values })).rows

test('a new project has exactly the fields of the contract', async () => {
  const { body } = await create('Research')
  expect(body).toEqual({
    id: expect.any(String),
    name: 'Research',
    version: 'v0.1',
    organization_id: organizationId,
    labels: {},
  })
  expect((await call('GET', `/projects/${body.id}`, { token: admin })).body).toEqual(body)
  expect((await call('GET', '/projects', { token: admin })).body).toEqual([body])
})

test('a new project has a network, a subnet per location and the default rules', async () => {
  const { id } = (await create('networked')).body
  const networks = await rows('SELECT id, name, cidr::text FROM networks WHERE project_id = $1', id)
  expect(networks).toEqual([{ id: expect.any(String), name: 'default-vpc-network', cidr: '172.27.0.0/16' }])
  const locations = await rows('SELECT name FROM locations ORDER BY position')
  expect(locations.length).toBeGreaterThan(0)
  const text = 'SELECT name, cidr::text, location FROM subnets WHERE project_id = $1 ORDER BY cidr'
  expect(await rows(text, id)).toEqual(
    locations.map(({ name }, index) => ({
      name: `default-subnet-${name}`,
      cidr: `172.27.${index * 16}.0/20`,
      location: name,
    })),
  )
  const rules = await rows('SELECT * FROM firewall_rules WHERE project_id = $1 ORDER BY id', id)
  const [anywhere, inside] = [
    { resource_id: '', cidr: '0.0.0.0/0' },
    { resource_id: networks[0].id, cidr: '' },
  ]
  expect(rules.map((rule) => [rule.name, rule.direction, rule.sources, rule.destinations])).toEqual([
    ['allow-ssh', 'ingress', [anywhere], [inside]],
    ['allow-internal', 'ingress', [inside], [inside]],
    ['allow-internal-egress', 'egress', [inside], [inside]],
    ['allow-egress', 'egress', [inside], [anywhere]],
  ])
  expect(new Set(rules.map(({ state }) => state))).toEqual(new Set(['active']))
  expect(rules[0]).toMatchObject({ protocols: ['tcp'], destination_ports: ['22'], source_ports: [] })
})

test('a new project has no separate limits, and its rules count towards quotas', async () => {
  const { id } = (await create('limited')).body
  const quotas = await rows('SELECT name, max, used FROM quotas WHERE project_id = $1', id)
  expect(quotas).toHaveLength(8)
  expect(new Set(quotas.map(({ max }) => max))).toEqual(new Set([null]))
  expect(quotas.filter(({ used }) => used > 0)).toEqual([{ name: 'firewall_rules', max: null, used: 4 }])
})

test('creating a project needs a name that is free in the organization, and an admin', async () => {
  await create('taken')
  expect((await create('taken')).body.code).toBe('already_exists')
  const body = { name: 'x', organization_id: organizationId }
  for (const role of ['viewer', 'member'] as const)
    expect((await call('POST', '/projects', { token: await tokenWith(role), body })).status).toBe(403)
  const stranger = await tokenWith('admin', await addOrganization(service.database))
  const foreign = await call('POST', '/projects', { token: stranger, body })
  const unknown = await call('POST', '/projects', {
    token: admin,
    body: { name: 'x', organization_id: uuid() },
  })
  expect([foreign.status, unknown.status]).toEqual([404, 404])
  expect(foreign.body.message).toBe(unknown.body.message)
  expect(await namesIn()).toEqual(['taken'])
})

test('50 identical concurrent requests create one project', async () => {
  const headers = { 'idempotency-key': uuid() }
  const responses = await Promise.all(Array.from({ length: 50 }, () => create('once', headers)))
  const created = responses.filter(({ status }) => status === 200)
  const others = responses.filter(({ status }) => status !== 200)
  expect(created.length).toBeGreaterThan(0)
  expect(created.filter((response) => response.headers.get('idempotency-replayed') !== 'true')).toHaveLength(
    1,
  )
  for (const response of created) expect(response.body).toEqual(created[0]?.body)
  for (const { status, headers, body } of others)
    expect([status, body.code, headers.get('retry-after')]).toEqual([409, 'conflict', '1'])
  expect(await namesIn()).toEqual(['once'])
})

test('a repeated request for a project returns the first response, even after a restart', async () => {
  const headers = { 'idempotency-key': uuid() }
  const { body } = await create('kept', headers)
  await service.restart()
  const replay = await create('kept', headers)
  expect([replay.status, replay.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
  expect(replay.body).toEqual(body)
})

test('a repeated request for a project with another body is rejected', async () => {
  const headers = { 'idempotency-key': uuid() }
  await create('one', headers)
  const { status, body } = await create('other', headers)
  expect([status, body.code]).toEqual([422, 'idempotency_key_reused'])
  expect(await namesIn()).toEqual(['one'])
})

test('a repeated request for a project is executed again if the first was refused', async () => {
  const headers = { 'idempotency-key': uuid() }
  const blocker = (await create('wanted')).body
  expect((await create('wanted', headers)).status).toBe(409)
  await call('DELETE', `/projects/${blocker.id}`, { token: admin })
  expect((await create('wanted', headers)).status).toBe(200)
})

test('a repeated request for a key returns its secret again, which is stored only encrypted', async () => {
  const { id } = (await create('secretive')).body
  const send = () =>
    call('POST', `/projects/${id}/access-keys`, {
      token: admin,
      body: { name: 'k', role: 'read' },
      headers: { 'idempotency-key': 'remember-me' },
    })
  const [first, again] = [await send(), await send()]
  expect(again.body).toEqual(first.body)
  const stored = await rows("SELECT encode(answer_sealed, 'escape') AS text FROM idempotency_keys")
  expect(stored.map(({ text }) => text).join('\n')).not.toContain(first.body.secret)
})

test('a project can be renamed, but not to a name that is taken', async () => {
  await create('taken')
  const { id } = (await create('before')).body
  const rename = (name: string) => call('PATCH', `/projects/${id}`, { token: admin, body: { name } })
  expect((await rename('after')).body.name).toBe('after')
  expect((await rename('taken')).body.code).toBe('already_exists')
  expect((await rename('after')).status).toBe(200)
  expect(await namesIn()).toEqual(['after', 'taken'])
})

test('a project is deleted with its networks and keys, and its name can be used again', async () => {
  const { id } = (await create('brief')).body
  const keys = `/projects/${id}/access-keys`
  const key = await call('POST', keys, { token: admin, body: { name: 'k', role: 'write' } })
  const token = key.body.secret
  expect((await call('GET', '', { token })).status).toBe(200)
  expect((await call('DELETE', `/projects/${id}`, { token: admin })).body).toEqual({})
  expect((await call('GET', '', { token })).status).toBe(401)
  expect((await call('GET', `/projects/${id}`, { token: admin })).status).toBe(404)
  expect((await call('DELETE', `/projects/${id}`, { token: admin })).status).toBe(404)
  for (const table of ['networks', 'subnets', 'firewall_rules'])
    expect(await rows(`SELECT FROM ${table} WHERE project_id = $1`, id)).toEqual([])
  expect((await create('brief')).status).toBe(200)
})

test('a project with a disk, a VM deleted on an unreachable host, or a running operation cannot be deleted', async () => {
  for (const fill of [insertDisk, insertHiddenVm, insertOperation]) {
    const { id } = (await create(fill.name)).body
    await fill(id)
    const { status, body } = await call('DELETE', `/projects/${id}`, { token: admin })
    expect([status, body.code]).toEqual([409, 'conflict'])
    expect((await call('GET', `/projects/${id}`, { token: admin })).status).toBe(200)
    expect(await rows('SELECT FROM quotas WHERE project_id = $1', id)).toHaveLength(8)
  }
})

test('the audit log records who did what in a project', async () => {
  const { id } = (await create('audited')).body
  await call('PATCH', `/projects/${id}`, { token: admin, body: { name: 'renamed' } })
  await call('DELETE', `/projects/${id}`, { token: admin })
  const trail = await rows('SELECT type, actor FROM events_written WHERE project_id = $1 ORDER BY seq', id)
  expect(trail.map(({ type }) => type)).toEqual(['project.created', 'project.updated', 'project.deleted'])
  expect(new Set(trail.map(({ actor }) => actor)).size).toBe(1)
  expect(trail[0].actor).toMatch(/^user:/)
})

async function insertDisk(projectId: string) {
  await rows(
    `INSERT INTO disks (id, project_id, name, type, size, size_gib, location, block_size, serial_number, state)
     SELECT $1, $2, 'd', 'persistent-ssd', '1GiB', 1, name, 512, 's', 'available' FROM locations LIMIT 1`,
    uuid(),
    projectId,
  )
}

/** Inserts a VM that was deleted while its host was unreachable. */
async function insertHiddenVm(projectId: string) {
  await rows(
    `INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, image,
                      os_disk_id, interface_id, network_id, subnet_id, mac_address, private_address, deleted_at)
     SELECT $1::uuid, $2::uuid, 'v', 'a40.1x', 'a40', 1, location, 'STATE_DELETING', 'i', $1::uuid, $1::uuid, network_id, id,
            ($1::uuid)::text, '172.27.0.9', slipway_now()
     FROM subnets WHERE project_id = $2::uuid LIMIT 1`,
    uuid(),
    projectId,
  )
}

async function insertOperation(projectId: string) {
  await rows(
    `INSERT INTO operation_queue (operation_id, project_id, resource_id, is_deletion, location)
     VALUES ($1, $2, $1, false, 'nowhere')`,
    uuid(),
    projectId,
  )
}
