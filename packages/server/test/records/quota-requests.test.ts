import { addOrganization, addUser, ownerToken, tokenOf, tokenOfNew } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
let operator: string
beforeAll(async () => {
  service = await startService()
  owner = await ownerToken(service)
  operator = service.credentials.operator_key
})
afterAll(() => service.close())

const request = (max: number, more: { name?: 'a100_gpus' | 'vms'; reason?: string } = {}) =>
  service.call('quotaRequestCreate', {
    token: owner,
    body: { name: more.name ?? 'a100_gpus', max, reason: more.reason ?? 'A training run in December' },
  })
const decide = (quota_request_id: string, state: 'approved' | 'rejected', note?: string) =>
  service.call('adminQuotaRequestUpdate', {
    token: operator,
    params: { quota_request_id },
    body: { state, ...(note !== undefined && { note }) },
  })
const limitOf = async (name: string) =>
  (await service.ok('organizationQuotaList', { token: owner })).items.find((quota) => quota.name === name)!
    .max
const operatorAlerts = async () =>
  (await service.ok('adminAlertList', { token: operator })).items.filter(
    ({ kind }) => kind === 'quota_request',
  )
const eventTypes = async (resource_id: string) =>
  (await service.ok('organizationEventList', { token: owner, query: { resource_id } })).items.map(
    ({ type }) => type,
  )

test('an approved quota request raises the quota, and its alert ends', async () => {
  const before = await limitOf('a100_gpus')
  const { body: created } = await request(before + 8)
  expect(created).toMatchObject({
    ...{ name: 'a100_gpus', max: before + 8, current_max: before, state: 'open', decided_at: '', note: '' },
    organization_id: service.credentials.organization_id,
  })
  expect(await operatorAlerts()).toMatchObject([
    {
      resource_id: created.id,
      organization_id: service.credentials.organization_id,
      message: expect.stringContaining('a100_gpus: A training run in December.'),
    },
  ])
  const open = await service.ok('adminQuotaRequestList', { token: operator, query: { state: 'open' } })
  expect(open.items).toEqual([created])
  expect((await decide(created.id, 'approved', 'New hosts arrive')).body).toMatchObject({
    state: 'approved',
    note: 'New hosts arrive',
    current_max: before + 8,
  })
  expect(await limitOf('a100_gpus')).toBe(before + 8)
  expect(await operatorAlerts()).toEqual([])
  expect(await eventTypes(created.id)).toEqual(['quota_request.approved', 'quota_request.created'])
  expect((await decide(created.id, 'rejected')).body).toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('is already approved'),
  })
})

test('a rejected quota request changes no quota', async () => {
  const before = await limitOf('vms')
  const { body: created } = await request(before + 1, { name: 'vms' })
  await decide(created.id, 'rejected', 'Not this month')
  expect(await limitOf('vms')).toBe(before)
  const { items } = await service.ok('quotaRequestList', { token: owner })
  expect(items[0]).toMatchObject({ id: created.id, state: 'rejected', note: 'Not this month' })
})

test('approving a quota request does not lower a quota that was raised further in the meantime', async () => {
  const before = await limitOf('vms')
  const { body: created } = await request(before + 1, { name: 'vms' })
  const items = [{ name: 'vms' as const, max: before + 50 }]
  const { organization_id } = service.credentials
  await service.ok('adminOrganizationQuotaSet', {
    token: operator,
    params: { organization_id },
    body: { items },
  })
  await decide(created.id, 'approved')
  expect(await limitOf('vms')).toBe(before + 50)
})

test('a quota has one open request, which must ask for more than the current limit', async () => {
  const before = await limitOf('a100_gpus')
  expect((await request(before)).body).toMatchObject({
    code: 'invalid_argument',
    details: [{ field: '/max', message: `must be higher than the current quota, which is ${before}` }],
  })
  const { body: created } = await request(before + 1)
  expect((await request(before + 2)).body).toMatchObject({ code: 'already_exists' })
  const params = { quota_request_id: created.id }
  await service.ok('quotaRequestDelete', { token: owner, params })
  expect((await service.call('quotaRequestDelete', { token: owner, params })).status).toBe(404)
  expect(await eventTypes(created.id)).toEqual(['quota_request.withdrawn', 'quota_request.created'])
})

test('another organization can neither see nor withdraw a quota request', async () => {
  const { body: created } = await request((await limitOf('a100_gpus')) + 1)
  const organization_id = await addOrganization(service.database, 'active')
  const token = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'owner' } })
  expect((await service.ok('quotaRequestList', { token, params: { organization_id } })).items).toEqual([])
  const params = { organization_id, quota_request_id: created.id }
  expect((await service.call('quotaRequestDelete', { token, params })).status).toBe(404)
  expect(await operatorAlerts()).toHaveLength(1)
  await decide(created.id, 'rejected')
})

test('decided quota requests are deleted after 90 days', async () => {
  const { items } = await service.ok('quotaRequestList', { token: owner })
  expect(items.length).toBeGreaterThan(0)
  await service.clock.advance('91 days')
  await service.server.reconciler.prune()
  expect(await service.sql('SELECT FROM quota_requests')).toEqual([])
  await service.clock.reset()
})

test('operators see when a user last signed in, and the organizations of the user', async () => {
  const { organization_id } = service.credentials
  const user = await addUser(service.database, { memberOf: { [organization_id]: 'viewer' } })
  const read = () => service.ok('adminUserGet', { token: operator, params: { user_id: user.id } })
  expect(await read()).toMatchObject({
    last_sign_in_at: '',
    sessions: 0,
    has_totp: false,
    has_password: true,
  })
  await tokenOf(service.database, user)
  const { last_sign_in_at, memberships, sessions } = await read()
  expect(Date.parse(last_sign_in_at)).toBeGreaterThan(0)
  expect(sessions).toBe(1)
  expect(memberships).toEqual([{ organization_id, organization_name: 'Demo', role: 'viewer' }])
  const { items } = await service.ok('adminUserList', { token: operator })
  expect(items.find(({ id }) => id === user.id)).toMatchObject({ last_sign_in_at })
  const query = { organization_id, limit: 1 }
  const [newest] = (await service.ok('adminUserList', { token: operator, query })).items
  expect(newest).toMatchObject({ id: user.id, role: 'viewer', last_sign_in_at })
  const other = { organization_id: await addOrganization(service.database, 'active') }
  expect((await service.ok('adminUserList', { token: operator, query: other })).items).toEqual([])
})
