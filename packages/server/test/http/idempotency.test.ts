import { keepSessions, ownerToken, tokenOfNew } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
let admin: string
let count = 0

beforeAll(async () => {
  service = await startService()
  owner = await ownerToken(service)
  admin = await tokenOfNew(service.database, { memberOf: { [service.credentials.organization_id]: 'admin' } })
  await keepSessions(service)
})
afterAll(() => service.close())

const newKey = () => `key-${++count}`
const newProject = () => ({
  name: `project-${++count}`,
  organization_id: service.credentials.organization_id,
})

const createProject = (key: string, body: unknown = newProject(), token = owner) =>
  service.call('projectCreate', { token, body, headers: { 'idempotency-key': key } })

const projectsNamed = (name: string) => service.sql('SELECT FROM projects WHERE name = $1', [name])

test('a repeated Idempotency-Key returns the first response, marked as a replay', async () => {
  const key = newKey()
  const body = newProject()
  const first = await createProject(key, body)
  const second = await createProject(key, { organization_id: body.organization_id, name: body.name })
  expect([first.status, second.status]).toEqual([200, 200])
  expect(second.body).toEqual(first.body)
  expect(first.headers.get('idempotency-replayed')).toBeNull()
  expect(second.headers.get('idempotency-replayed')).toBe('true')
  expect(await projectsNamed(body.name)).toHaveLength(1)
})

test('fifty identical concurrent requests with one Idempotency-Key create one project', async () => {
  const key = newKey()
  const body = newProject()
  const responses = await Promise.all(Array.from({ length: 50 }, () => createProject(key, body)))
  const done = responses.filter(({ status }) => status === 200)
  const early = responses.filter(({ status }) => status === 409)
  expect(done.length + early.length).toBe(50)
  expect(done.filter(({ headers }) => !headers.get('idempotency-replayed'))).toHaveLength(1)
  expect(new Set(done.map((response) => response.body.id)).size).toBe(1)
  for (const { headers, body } of early) {
    expect(headers.get('retry-after')).toBe('1')
    expect(body).toMatchObject({ code: 'conflict' })
  }
  expect(await projectsNamed(body.name)).toHaveLength(1)
})

test('an Idempotency-Key with another body, path or method is rejected', async () => {
  const key = newKey()
  const headers = { 'idempotency-key': key }
  const { body } = await createProject(key)
  const reused = { status: 422, body: { code: 'idempotency_key_reused' } }
  expect(await createProject(key)).toMatchObject(reused)
  const params = { project_id: body.id }
  expect(await service.call('projectDelete', { token: owner, params, headers })).toMatchObject(reused)
  const rename = { token: owner, params, headers, body: { name: 'renamed' } }
  expect(await service.call('projectUpdate', rename)).toMatchObject(reused)
  expect(await service.ok('projectGet', { token: owner, params })).toEqual(body)
})

test('an Idempotency-Key belongs to its caller', async () => {
  const key = newKey()
  const first = await createProject(key, newProject(), owner)
  const other = await createProject(key, newProject(), admin)
  expect([first.status, other.status]).toEqual([200, 200])
  expect(other.body.id).not.toBe(first.body.id)
})

test('an Idempotency-Key stores only successful responses', async () => {
  const key = newKey()
  const body = newProject()
  const { body: blocker } = await createProject(newKey(), body)
  expect(await createProject(key, body)).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  await service.ok('projectDelete', { token: owner, params: { project_id: blocker.id } })
  const { status, headers } = await createProject(key, body)
  expect([status, headers.get('idempotency-replayed')]).toEqual([200, null])
  // The key of a failed request can be used for another request.
  const second = newKey()
  expect((await createProject(second, { name: '' })).status).toBe(400)
  expect((await createProject(second)).status).toBe(200)
})

test('an Idempotency-Key expires after 24 hours and not before', async () => {
  const key = newKey()
  await createProject(key)
  await service.clock.advance('23 hours 59 minutes')
  expect((await createProject(key)).status).toBe(422)
  await service.clock.advance('2 minutes')
  expect((await createProject(key)).status).toBe(200)
  await service.clock.reset()
})

test('an Idempotency-Key works for DELETE and for asynchronous requests', async () => {
  const headers = { 'idempotency-key': newKey() }
  const body = vmBody()
  const first = await service.ok('vmCreate', { body, headers })
  expect(await service.ok('vmCreate', { body, headers })).toEqual(first)
  const params = { project_id: (await createProject(newKey())).body.id }
  const deletion = { token: owner, params, headers: { 'idempotency-key': newKey() } }
  await service.ok('projectDelete', deletion)
  // The project no longer exists, so the request can only be a replay.
  expect((await service.call('projectDelete', deletion)).status).toBe(404)
  const network = await service.ok('networkCreate', { body: { name: 'once', cidr: '10.9.0.0/16' } })
  const removal = { params: { network_id: network.id }, headers: { 'idempotency-key': newKey() } }
  await service.ok('networkDelete', removal)
  const replay = await service.call('networkDelete', removal)
  expect([replay.status, replay.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
})

test('an Idempotency-Key still replays after a restart', async () => {
  const key = newKey()
  const body = newProject()
  const first = await createProject(key, body)
  await service.restart()
  const second = await createProject(key, body)
  expect([second.status, second.body]).toEqual([200, first.body])
  expect(second.headers.get('idempotency-replayed')).toBe('true')
})

test.each([
  ['without characters', ''],
  ['of 256 characters', 'x'.repeat(256)],
  ['with a space', 'a b'],
  ['with a character beyond ASCII', 'clé'],
])('an Idempotency-Key %s is rejected', async (_name, key) => {
  expect(await createProject(key)).toMatchObject({ status: 400, body: { code: 'invalid_argument' } })
})

test.each([['!'], ['~'.repeat(255)]])('an Idempotency-Key may be %s', async (key) => {
  expect((await createProject(key)).status).toBe(200)
})

test('a stored response with a secret can be decrypted only with its Idempotency-Key', async () => {
  const key = newKey()
  const create = { token: owner, body: { name: 'ci', role: 'read' }, headers: { 'idempotency-key': key } }
  const { secret } = await service.ok('accessKeyCreate', create)
  expect((await service.ok('accessKeyCreate', create)).secret).toBe(secret)
  const [{ stored }] = (await service.sql(
    `SELECT string_agg(encode(answer_sealed, 'escape') || caller || encode(key_hash, 'escape'), '') AS stored
       FROM idempotency_keys`,
  )) as [{ stored: string }]
  expect(stored).not.toContain(secret)
  expect(stored).not.toContain('"name"')
  expect(stored).not.toContain(key)
})
