import { execFileSync } from 'node:child_process'
import { addOrganization, addProject, setPayment, tokenOfNew } from '@slipway/testing/people.ts'
import { freshName } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const register = (name: string, public_key = sshKey) =>
  service.call('sshKeyCreate', { body: { name, public_key } })

test('an SSH key is registered as it was sent, with the fingerprint that ssh-keygen shows', async () => {
  const name = freshName('laptop')
  const { body } = await register(name, `${sshKey}\n`)
  const [, fingerprint] = execFileSync('ssh-keygen', ['-lf', '-'], { input: sshKey, encoding: 'utf8' }).split(
    ' ',
  )
  expect(body).toEqual({
    id: expect.any(String),
    name,
    public_key: `${sshKey}\n`,
    type: 'ssh-ed25519',
    fingerprint,
    created_at: expect.any(String),
  })
  expect((await service.ok('sshKeyList')).items).toContainEqual(body)
  const { items } = await service.ok('eventList', { query: { resource_id: body.id } }).then(async (first) => {
    let events = first
    while (events.items.length === 0)
      events = await service.ok('eventList', { query: { resource_id: body.id } })
    return events
  })
  expect(items).toMatchObject([{ type: 'ssh_key.created', data: { name } }])
})

test('the name of an SSH key is unique in the project, and free again when the key is removed', async () => {
  const name = freshName('desk')
  const { id } = (await register(name)).body
  expect(await register(name)).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  const params = { ssh_key_id: id }
  expect((await service.call('sshKeyDelete', { params })).body).toEqual({})
  expect((await service.call('sshKeyDelete', { params })).status).toBe(404)
  expect((await register(name)).status).toBe(200)
})

test('an SSH key has at most 4,096 characters including its comment', async () => {
  expect((await register('longest', sshKey.padEnd(4_096, 'x'))).status).toBe(200)
  const response = await register('longer', sshKey.padEnd(4_097, 'x'))
  expect(response).toMatchObject({ status: 400, body: { details: [{ field: '/public_key' }] } })
})

test('an invalid SSH key is rejected', async () => {
  const response = await register('broken', 'ssh-ed25519 AAAA')
  expect(response).toMatchObject({ status: 400, body: { details: [{ field: '/public_key' }] } })
})

test('SSH keys can be registered without a payment method, and are deleted with their project', async () => {
  const organization_id = await addOrganization(service.database)
  const token = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'owner' } })
  const project_id = await addProject(service, token, organization_id, 'first')
  await setPayment(service.database, organization_id, 'never')
  const params = { project_id }
  const body = { name: 'laptop', public_key: sshKey }
  const { id } = await service.ok('sshKeyCreate', { params, body, token })
  expect((await service.call('vmList', { params, token })).status).toBe(402)
  const foreign = { project_id: service.credentials.project_id, ssh_key_id: id }
  expect((await service.call('sshKeyDelete', { params: foreign })).status).toBe(404)
  await service.ok('projectDelete', { params, token })
  expect(await service.sql('SELECT FROM ssh_keys WHERE project_id = $1', [project_id])).toEqual([])
})
