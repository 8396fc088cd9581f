import type { BillingDashboard, BillingInvoice } from '@slipway/contract'
import { addKey, addProject, keepSessions } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
beforeAll(async () => {
  service = await startService()
  await service.clock.freeze('2026-11-10T00:00:00Z')
  await service.sql(`UPDATE prices SET valid_from = '2026-01-01'`)
  const { email, password } = service.credentials
  const body = { grant_type: 'password', email, password }
  owner = (await service.ok('authToken', { token: null, body })).access_token
  await keepSessions(service)
})
afterAll(() => service.close())

const link = async () => new URL((await service.ok('organizationBilling', { token: owner })).url).pathname
const open = (path: string, init: RequestInit = {}) =>
  fetch(`${service.url}${path}`, { redirect: 'manual', ...init })
const post = (path: string, body: Record<string, string> = {}, headers: Record<string, string> = {}) =>
  open(path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })
/** Reads what the page behind the link shows. */
const read = async (path: string, month = '') =>
  (await (await open(`${path}/data?month=${month}`)).json()) as BillingDashboard
/** Returns 'done', or the message of the refusal. */
const resultOf = async (response: Response) =>
  response.ok ? 'done' : ((await response.json()) as { message: string }).message
const isActive = 'A payment method is already active. Only an owner can replace it.'
const paymentState = async () => {
  const [row] = await service.sql<{ payment_state: string }>(
    'SELECT payment_state FROM organizations WHERE id = $1',
    [service.credentials.organization_id],
  )
  return row!.payment_state
}
const setState = async (state: string) => {
  await service.sql('UPDATE organizations SET payment_state = $1', [state])
  await service.sql('DELETE FROM payment_methods')
}
const card = (number: string, expiry = '12/30') => ({ number, expiry })

test('owners and write keys get a new billing link each time, which opens a page of the console whose data is not cached', async () => {
  const reader = (await addKey(service, owner, service.credentials.project_id, 'read')).secret
  expect((await service.call('organizationBilling', { token: reader })).status).toBe(403)
  const [first, second] = [await link(), await link()]
  expect(first).toMatch(/^\/billing\/slpb_[\w-]{43}$/)
  expect(first).not.toBe(second)
  const response = await open(first)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toContain('text/html')
  const policy = response.headers.get('content-security-policy')!
  expect(policy).toContain("default-src 'self'")
  expect(policy).not.toContain('unsafe-inline')
  // Browsers do not send the link to other sites.
  expect(response.headers.get('referrer-policy')).toBe('no-referrer')
  expect((await open(`${first}/data`)).headers.get('cache-control')).toBe('no-store')
  expect((await read(first)).console_path).toMatch(/^\/projects\/[0-9a-f-]{36}\/settings\/billing$/)
})

test('only owners can read the payment method, and only its brand, last four digits and expiry', async () => {
  const { access_key: token } = service.credentials
  expect((await service.call('organizationPaymentMethod', { token })).status).toBe(403)
  expect(await service.ok('organizationPaymentMethod', { token: owner })).toEqual({
    state: 'active',
    brand: 'Visa',
    last4: '4242',
    expires_month: expect.stringMatching(/^20\d\d-(0[1-9]|1[0-2])$/),
  })
})

test('the billing link works for 15 minutes and is useless afterwards', async () => {
  const path = await link()
  expect((await read(path)).minutes_left).toBe(15)
  await service.clock.advance('14 minutes 59 seconds')
  expect((await read(path)).minutes_left).toBe(1)
  await service.clock.advance('1 second')
  for (const page of [path, `${path}/invoices/${service.credentials.organization_id}`])
    expect((await open(page)).status).toBe(404)
  for (const response of [
    await open(`${path}/data`),
    await open(`${path}/data/invoices/${service.credentials.organization_id}`),
    await post(`${path}/card`, card('4242424242424242')),
    await post(`${path}/card/remove`),
    await post(`${path}/provider`),
  ]) {
    expect(response.status).toBe(404)
    expect(await resultOf(response)).toBe(
      'This billing link is no longer valid. Open the billing dashboard again to get a new link.',
    )
  }
  expect((await open(`/billing/slpb_${'x'.repeat(43)}`)).status).toBe(404)
})

test('the billing link stops working when the owner who requested it loses the role', async () => {
  const path = await link()
  await service.sql(`UPDATE memberships SET role = 'admin'`)
  expect((await open(path)).status).toBe(404)
  await service.sql(`UPDATE memberships SET role = 'owner'`)
  expect((await open(path)).status).toBe(200)
})

test('the billing link is stored only as a hash and never logged, in any spelling', async () => {
  const path = await link()
  const token = path.split('/').at(-1)!
  await open(path)
  await open(`${path}?month=2026-10`)
  await open(`${path}/data?month=2026-10`)
  await open(`${path}/data/invoices/1`)
  await open(`/%62illing/${token}`)
  await open(`${path}/nowhere`)
  await open(`/billing//${token}`)
  await post(`${path}/card`, card('4000000000000002'))
  const logged = service.logLines.join('')
  expect(logged).toContain('/billing/:token')
  expect(logged).not.toContain(token)
  expect(logged).not.toContain('4000000000000002')
  const [row] = await service.sql<{ all: string }>(
    `SELECT string_agg(t::text, ' ') AS all FROM (SELECT t::text FROM billing_sessions t UNION ALL SELECT e::text FROM events_written e) t`,
  )
  expect(row!.all).not.toContain(token)
})

test('the billing dashboard rejects forms that are submitted from another site', async () => {
  const path = await link()
  const crossSite = await post(`${path}/card`, card('4242424242424242'), { 'sec-fetch-site': 'cross-site' })
  expect(crossSite.status).toBe(403)
})

test('the billing link stops working when the owner who requested it signs out', async () => {
  const { email, password } = service.credentials
  const grant = { grant_type: 'password', email, password }
  const session = await service.ok('authToken', { token: null, body: grant })
  const token = session.access_token
  const path = new URL((await service.ok('organizationBilling', { token })).url).pathname
  expect((await open(path)).status).toBe(200)
  await service.ok('authRevoke', { token: null, body: { refresh_token: session.refresh_token } })
  expect((await open(path)).status).toBe(404)
  expect((await post(`${path}/card`, card('4242424242424242'))).status).toBe(404)
})

/** Returns the path of the billing link that the key gets. */
async function keyLink(token = service.credentials.access_key) {
  return new URL((await service.ok('organizationBilling', { token })).url).pathname
}

test('a write key’s billing link shows its project and nothing else of the organization', async () => {
  const { organization_id } = service.credentials
  const sibling = await addProject(service, owner, organization_id, 'sibling')
  // The usage is of the current day, because a roll-up would keep usage that is deleted at the end of this test.
  await service.sql(
    `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
     SELECT p.id, 'us-east1-a', 'vm', gen_random_uuid(), t, 144, tstzrange('2026-11-10T00:00Z', '2026-11-10T00:10Z')
     FROM (VALUES ($1::uuid, 'a100.1x'), ($2::uuid, 'a40.8x')) AS p (id, t)`,
    [service.credentials.project_id, sibling],
  )
  const whole = await read(await link())
  expect(whole.usage.map(({ product_name }) => product_name)).toContain('a40.8x')
  expect(whole.payment_method).toMatchObject({ brand: 'Visa', last4: '4242' })
  expect(whole.invoices).toHaveLength(1)
  const [openInvoice] = (await service.ok('organizationInvoices', { token: owner })).items
  const path = await keyLink()
  const board = await read(path)
  expect(board).toMatchObject({
    organization_name: 'Demo',
    project_name: 'default',
    payment_method: { state: 'active', brand: '', last4: '', expires_month: '' },
    running: { vms: 0, disks: 0 },
    costs: { month_to_date_usd: 34.8 },
    invoices: [],
  })
  expect(board.usage.map(({ product_name }) => product_name)).toEqual(['a100.1x'])
  expect((await open(`${path}/data/invoices/${openInvoice!.id}`)).status).toBe(404)
  const [event] = await service.sql<{ actor: string; data: unknown }>(
    `SELECT actor, data FROM events_written WHERE type = 'organization.billing_link_created' ORDER BY seq DESC LIMIT 1`,
  )
  expect(event).toMatchObject({
    actor: expect.stringMatching(/^access_key:/),
    data: { project_id: service.credentials.project_id },
  })
  await service.sql('DELETE FROM usage_intervals')
})

test('a write key’s billing link can add a payment method while none is active, but never replace or remove one', async () => {
  const path = await keyLink()
  expect(await resultOf(await post(`${path}/card`, card('4000000000000341')))).toBe(isActive)
  expect((await post(`${path}/card/remove`)).status).toBe(403)
  for (const state of ['never', 'removed', 'declined']) {
    await setState(state)
    expect((await read(path)).payment_method.state).toBe(state)
    const races = await Promise.all([1, 2, 3].map(() => post(`${path}/card`, card('4242424242424242'))))
    expect((await Promise.all(races.map(resultOf))).toSorted()).toEqual([isActive, isActive, 'done'])
    expect(await paymentState()).toBe('active')
  }
  const [event] = await service.sql<{ actor: string }>(
    `SELECT actor FROM events_written WHERE type = 'organization.payment_method_set' ORDER BY seq DESC LIMIT 1`,
  )
  expect(event!.actor).toMatch(/^access_key:/)
})

test('a write key’s billing link stops working when the key is revoked or expires, and when the operator disables such links', async () => {
  const { project_id } = service.credentials
  const [revoked, expired] = [
    await addKey(service, owner, project_id, 'write'),
    await addKey(service, owner, project_id, 'write'),
  ]
  const paths = [await keyLink(revoked.secret), await keyLink(expired.secret)]
  for (const path of paths) expect((await open(path)).status).toBe(200)
  await service.ok('accessKeyDelete', { token: owner, params: { key_id: revoked.id } })
  await service.sql('UPDATE access_keys SET expires_at = slipway_now() WHERE id = $1', [expired.id])
  for (const path of paths) {
    expect((await open(path)).status).toBe(404)
    expect((await post(`${path}/card`, card('4242424242424242'))).status).toBe(404)
  }
  const strict = await service.another((config) => {
    config.server.role = 'api'
    config.billing.keysMayOpen = false
  })
  const { organization_id, access_key } = service.credentials
  const headers = { authorization: `Bearer ${access_key}` }
  const answer = await fetch(`${strict.url}/v0.1/organizations/${organization_id}/billing`, { headers })
  expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
    403,
    'permission_denied',
  ])
  expect((await fetch(`${strict.url}${await keyLink()}`)).status).toBe(404)
})

const get = () => service.call('vmList')
const create = () => service.call('vmCreate', { body: vmBody() })

test('setting the first payment method immediately enables the API in every process', async () => {
  const other = await service.another((config) => {
    config.server.role = 'api'
  })
  await setState('never')
  const path = await link()
  const list = `/v0.1/projects/${service.credentials.project_id}/vms`
  const headers = { authorization: `Bearer ${service.credentials.access_key}` }
  const statuses = async () =>
    Promise.all(
      [service.url, other.url].map(async (url) => (await fetch(`${url}${list}`, { headers })).status),
    )
  await expect.poll(statuses).toEqual([402, 402])
  expect((await read(path)).payment_method.state).toBe('never')

  for (const [number, problem] of [
    ['4000 0000 0000 0002', 'The card was declined'],
    ['4000000000000069', 'The card has expired'],
    ['4111111111111111', 'This number is not a test card'],
    ['hello', 'This number is not a test card'],
  ] as const)
    expect(await resultOf(await post(`${path}/card`, card(number)))).toContain(problem)
  expect(await resultOf(await post(`${path}/card`))).toContain('This number is not a test card')
  const ofLastMonth = await post(`${path}/card`, card('4242424242424242', '10/26'))
  expect(await resultOf(ofLastMonth)).toContain('The card has expired')
  const ofNoMonth = await post(`${path}/card`, card('4242424242424242', '13/30'))
  expect(await resultOf(ofNoMonth)).toContain('Enter the expiry as month and year')
  expect(await paymentState()).toBe('never')

  expect(await resultOf(await post(`${path}/card`, card('4242 4242 4242 4242')))).toBe('done')
  expect(await paymentState()).toBe('active')
  expect((await read(path)).payment_method).toMatchObject({ brand: 'Visa', last4: '4242' })
  await expect.poll(statuses).toEqual([200, 200])
  const [organization] = await service.ok('organizationList')
  expect(organization!.payment_customer_id).not.toBe('')
})

test('the card number is never stored or logged', async () => {
  const [row] = await service.sql<{ all: string }>(
    `SELECT string_agg(t::text, ' ') AS all FROM (SELECT m::text FROM payment_methods m UNION ALL SELECT e::text FROM events_written e) t`,
  )
  expect(row!.all).not.toMatch(/4242 ?4242/)
  expect(service.logLines.join('')).not.toMatch(/4242 ?4242/)
})

test('the payment method can be removed only when nothing is running; afterwards resources can be read and deleted, but not created or started', async () => {
  const path = await link()
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  await service.ended(operation.operation_id)
  const vm_id = operation.metadata.id
  expect((await read(path)).running).toEqual({ vms: 1, disks: 0 })
  expect(await resultOf(await post(`${path}/card/remove`))).toContain(
    'cannot be removed while VMs are running',
  )
  expect(await paymentState()).toBe('active')
  const stop = await service.ok('vmUpdate', { params: { vm_id }, body: { action: 'STOP' } })
  await service.ended(stop.operation.operation_id)
  const disk = await service.ok('diskCreate', { body: { name: 'd', size: '1GiB', location: 'us-east1-a' } })
  await service.ended(disk.operation.operation_id)
  expect(await resultOf(await post(`${path}/card/remove`))).toContain(
    'cannot be removed while VMs are running',
  )
  const gone = await service.ok('diskDelete', { params: { disk_id: disk.operation.metadata.id } })
  await service.ended(gone.operation.operation_id)

  expect(await resultOf(await post(`${path}/card/remove`))).toBe('done')
  expect(await paymentState()).toBe('removed')
  await expect.poll(async () => (await create()).status).toBe(402)
  expect((await service.call('vmUpdate', { params: { vm_id }, body: { action: 'START' } })).status).toBe(402)
  expect((await get()).status).toBe(200)
  const deletion = await service.ok('vmDelete', { params: { vm_id } })
  await service.ended(deletion.operation.operation_id)
  expect((await read(path)).payment_method).toMatchObject({ state: 'removed', last4: '' })
})

test('the payment method becomes declined when the charge for an invoice fails, and a new card pays the invoice', async () => {
  let path = await link()
  await post(`${path}/card`, card('4000000000000341'))
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  await service.ended(operation.operation_id)
  await service.clock.freeze('2026-12-01T00:05:00Z')
  await service.server.billing.once()
  const states = async () =>
    (await service.ok('organizationInvoices', { token: owner })).items.map(({ state }) => state)
  expect(await states()).toEqual(['open', 'issued'])
  expect(await paymentState()).toBe('declined')
  path = await link()
  expect((await read(path)).payment_method.state).toBe('declined')
  await post(`${path}/card`, card('4242424242424242', '01/2027'))
  expect(await states()).toEqual(['open', 'paid'])
  expect(await paymentState()).toBe('active')
})

test('the payment method stops working when the month on the card has passed', async () => {
  await service.clock.freeze('2027-01-31T23:59:59Z')
  await service.server.billing.once()
  expect(await paymentState()).toBe('active')
  await service.clock.freeze('2027-02-01T00:00:00Z')
  await service.server.billing.once()
  expect(await paymentState()).toBe('declined')
})

test('the billing dashboard shows the costs of each day of a month by product, and invoices', async () => {
  const path = await link()
  const board = await read(path, '2026-11')
  const days = board.usage.filter(({ product_name }) => product_name === 'a100.1x').map(({ date }) => date)
  expect(days).toHaveLength(21)
  expect(days.at(-1)).toBe('2026-11-30')
  // Any other text means the current month.
  expect((await read(path, '<script>')).usage).toEqual((await read(path, board.current_month)).usage)
  const [invoice] = (await service.ok('organizationInvoices', { token: owner })).items.slice(-1)
  const { lines, ...rest } = invoice!
  expect(board.invoices.at(-1)).toEqual(rest)
  const shown = (await (await open(`${path}/data/invoices/${invoice!.id}`)).json()) as BillingInvoice
  expect(shown).toMatchObject({ organization_name: 'Demo', issued_on: '2026-12-01', invoice: { lines } })
  expect(shown.project_names[lines[0]!.project_id]).toBe('default')
  for (const id of ['nonsense', service.credentials.organization_id])
    expect((await open(`${path}/data/invoices/${id}`)).status).toBe(404)
})

test('the billing dashboard shows no data of another organization', async () => {
  const { id } = await service.ok('adminOrganizationCreate', {
    token: service.credentials.operator_key,
    body: { name: 'Other' },
  })
  const [invoice] = (await service.ok('organizationInvoices', { token: owner })).items.slice(-1)
  const path = await link()
  await service.sql('UPDATE invoices SET organization_id = $1 WHERE id = $2', [id, invoice!.id])
  expect((await open(`${path}/data/invoices/${invoice!.id}`)).status).toBe(404)
  expect((await read(path)).invoices.map(({ id }) => id)).not.toContain(invoice!.id)
})
