import { eventually } from '@slipway/testing/eventually.ts'
import {
  addKey,
  addOrganization,
  addUser,
  keepSessions,
  ownerToken,
  password,
  tokenOf,
} from '@slipway/testing/people.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { startReceiver } from '@slipway/testing/webhook-receiver.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

/** What an operator has stopped stays stopped, and operators can stop everything that a tenant runs. */

let service: TestService
let owner: string
let operator: string
beforeAll(async () => {
  service = await startService((config) => {
    config.webhooks.allowPrivateRanges = ['127.0.0.0/8']
  })
  owner = await ownerToken(service)
  operator = service.credentials.operator_key
  await keepSessions(service)
})
afterAll(() => service?.close())
afterEach(() => suspend({ suspended: false }))

const suspend = (body: { suspended: boolean; stop_vms?: boolean }) =>
  service.ok('adminOrganizationUpdate', { token: operator, body })
const refusal = ({ status, body }: { status: number; body: unknown }) => [
  status,
  (body as { code: string }).code,
]
const resources = () => resourcesOf(service)
const stateIn = async (vm_id: string) => {
  const { items } = await service.ok('adminVmList', { token: operator })
  return items.find(({ id }) => id === vm_id)?.state
}

test('members and keys of a suspended organization can only read it and pay', async () => {
  const { secret } = await service.ok('organizationKeyCreate', {
    token: owner,
    body: { name: 'ci', role: 'owner' },
  })
  await suspend({ suspended: true })
  for (const token of [owner, service.credentials.access_key, secret]) {
    for (const id of [
      'vmList',
      'projectGet',
      'accessKeyList',
      'webhookList',
      'budgetGet',
      'eventList',
    ] as const)
      expect(refusal(await service.call(id, { token })), id).toEqual([403, 'suspended'])
    expect(refusal(await service.call('vmCreate', { token, body: vmBody() }))).toEqual([403, 'suspended'])
    expect((await service.ok('organizationList', { token })).map(({ id }) => id)).toEqual([
      service.credentials.organization_id,
    ])
    expect((await service.call('organizationGet', { token })).status).toBe(200)
    const body = { name: 'more', organization_id: service.credentials.organization_id }
    expect(refusal(await service.call('projectCreate', { token, body }))).toEqual([403, 'suspended'])
  }
  for (const token of [owner, secret]) {
    expect(refusal(await service.call('memberList', { token }))).toEqual([403, 'suspended'])
    expect(refusal(await service.call('organizationKeyList', { token }))).toEqual([403, 'suspended'])
    expect((await service.call('organizationInvoices', { token })).status).toBe(200)
  }
  expect((await service.call('organizationBilling', { token: owner })).status).toBe(200)
  const { email } = service.credentials
  const grant = { grant_type: 'password', email, password: service.credentials.password }
  expect((await service.call('authToken', { token: null, body: grant })).status).toBe(200)
  await suspend({ suspended: false })
  expect((await service.call('vmList')).status).toBe(200)
})

test('a suspension that stops VMs stops those that run and those that start later, and is recorded in the audit log', async () => {
  const running = await resources().newVm()
  const { operation } = await resources().createVm()
  await suspend({ suspended: true, stop_vms: true })
  await eventually(async () => {
    await service.server.reconciler.suspension()
    return (
      (await stateIn(running)) === 'STATE_SHUTOFF' &&
      (await stateIn(operation.metadata.id)) === 'STATE_SHUTOFF'
    )
  })
  const { items } = await service.ok('adminEventList', {
    token: operator,
    query: { type: 'organization.suspended' },
  })
  expect(items[0]).toMatchObject({
    actor: expect.stringMatching(/^operator_key:/),
    data: { stop_vms: true },
  })
  const wrong = { suspended: false, stop_vms: true }
  expect(refusal(await service.call('adminOrganizationUpdate', { token: operator, body: wrong }))).toEqual([
    400,
    'invalid_argument',
  ])
  await suspend({ suspended: false })
  expect(await resources().stateOf(running)).toBe('STATE_SHUTOFF')
  const accepted = await resources().act(running, { action: 'START' })
  await resources().succeeded(accepted)
  await service.server.reconciler.suspension()
  expect(await resources().stateOf(running)).toBe('STATE_RUNNING')
})

test('webhooks of a suspended organization pause, and deliver the missed events when it is released', async () => {
  const receiver = await startReceiver()
  const body = { url: `${receiver.url}/hook`, event_types: ['disk.*'] }
  await service.ok('webhookCreate', { token: owner, body })
  const addEvent = (type: string) =>
    service.sql(
      `INSERT INTO events_pending (id, project_id, type, resource_type, resource_id, actor, request_id)
       VALUES (gen_random_uuid(), $1, $2, 'test', 'x', 'system', '')`,
      [service.credentials.project_id, type],
    )
  const deliver = async () => {
    await service.ok('adminEventList', { token: operator })
    await service.server.webhooks.once()
  }
  await suspend({ suspended: true })
  await addEvent('disk.creating')
  await deliver()
  await service.clock.advance('2 days')
  await addEvent('disk.available')
  await deliver()
  expect(receiver.received).toEqual([])
  await suspend({ suspended: false })
  await deliver()
  await deliver()
  await eventually(async () => receiver.received.length === 2)
  expect(receiver.received.map(({ body: { type } }) => type)).toEqual(['disk.creating', 'disk.available'])
  await service.clock.reset()
})

test('operators can list, stop and delete any tenant’s VM without seeing its contents', async () => {
  const vm_id = await resources().newVm({ startup_script: '#!/bin/sh\necho secret' })
  const { items } = await service.ok('adminVmList', {
    token: operator,
    query: { organization_id: service.credentials.organization_id },
  })
  expect(items.find(({ id }) => id === vm_id)).toMatchObject({
    state: 'STATE_RUNNING',
    project_id: service.credentials.project_id,
    organization_name: 'Demo',
    type: 'a100.1x',
  })
  expect(JSON.stringify(items)).not.toContain('secret')
  const elsewhere = await addOrganization(service.database)
  const none = await service.ok('adminVmList', { token: operator, query: { organization_id: elsewhere } })
  expect(none.items).toEqual([])
  const organizations = await service.ok('adminOrganizationList', { token: operator })
  const vmsOf = (wanted: string) => organizations.items.find(({ id }) => id === wanted)?.vms
  expect([vmsOf(service.credentials.organization_id), vmsOf(elsewhere)]).toEqual([items.length, 0])
  const params = { vm_id }
  await resources().succeeded(await service.ok('adminVmStop', { token: operator, params }))
  expect(await resources().stateOf(vm_id)).toBe('STATE_SHUTOFF')
  const stopped = await service.ok('eventList', { query: { resource_id: vm_id, type: 'vm.stopping' } })
  expect(stopped.items[0]!.actor).toMatch(/^operator_key:/)
  await resources().ended(await service.ok('adminVmDelete', { token: operator, params }))
  expect((await service.call('vmGet', { params })).status).toBe(404)
  expect((await service.call('adminVmStop', { token: operator, params })).status).toBe(404)
})

test('the keys of a suspended user stop working, and work again when the user is released', async () => {
  const { organization_id, project_id } = service.credentials
  const maker = await addUser(service.database, {
    memberOf: { [organization_id]: 'admin' },
    isOperator: true,
  })
  const token = await tokenOf(service.database, maker)
  const project = await addKey(service, token, project_id, 'read')
  const role = 'admin' as const
  const organization = await service.ok('organizationKeyCreate', { token, body: { name: 'org', role } })
  const operatorKey = await service.ok('adminKeyCreate', { token, body: { name: 'ops' } })
  const child = await service.ok('accessKeyCreate', {
    token: organization.secret,
    body: { name: 'child', role: 'read' },
  })
  expect(child.created_by).toBe(maker.id)
  const secrets = [project, organization, operatorKey, child].map(({ secret }) => secret)
  const statuses = () =>
    Promise.all(secrets.map(async (secret) => (await service.call('rootGet', { token: secret })).status))
  const set = (suspended: boolean) =>
    service.ok('adminUserUpdate', { token: operator, params: { user_id: maker.id }, body: { suspended } })
  await set(true)
  expect(await statuses()).toEqual([401, 401, 401, 401])
  const grant = { grant_type: 'password', email: maker.email, password }
  expect(refusal(await service.call('authToken', { token: null, body: grant }))).toEqual([
    400,
    'invalid_grant',
  ])
  await set(false)
  expect(await statuses()).toEqual([200, 200, 200, 200])
})

test('losing the operator role ends the user’s operator keys, and the last operator cannot lose it', async () => {
  const [first, second] = [
    await addUser(service.database, { isOperator: true }),
    await addUser(service.database, { isOperator: true }),
  ]
  await service.sql('UPDATE users SET is_operator = false WHERE id <> ALL ($1::uuid[])', [
    [first.id, second.id],
  ])
  const token = await tokenOf(service.database, first)
  const { secret, id } = await service.ok('adminKeyCreate', { token, body: { name: 'ops' } })
  const listed = await service.ok('adminKeyList', { token })
  expect(listed.items[0]).toMatchObject({ id, name: 'ops', created_by: first.id })
  const unmark = (user_id: string) =>
    service.call('adminUserUpdate', { token: operator, params: { user_id }, body: { is_operator: false } })
  expect((await unmark(first.id)).body).toMatchObject({ id: first.id, is_operator: false })
  expect((await service.call('adminUserList', { token })).status).toBe(403)
  expect((await service.call('rootGet', { token: secret })).status).toBe(401)
  expect(refusal(await unmark(second.id))).toEqual([409, 'conflict'])
  const raise = { params: { user_id: first.id }, token: operator, body: { is_operator: true } }
  expect((await service.call('adminUserUpdate', raise)).status).toBe(400)
  const revoked = await service.ok('adminKeyCreate', { token: operator, body: { name: 'brief' } })
  await service.ok('adminKeyDelete', { token: operator, params: { key_id: revoked.id } })
  expect((await service.call('rootGet', { token: revoked.secret })).status).toBe(401)
})
