import { keepSessions } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import Stripe from 'stripe'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { StripeStandIn } from '../support/stripe-stand-in.ts'

const secret = 'whsec_stand_in'
const provider = new StripeStandIn()
let service: TestService
let owner: string

beforeAll(async () => {
  const url = await provider.start()
  service = await startService((config) => {
    Object.assign(config.billing, {
      provider: 'stripe',
      stripeKey: provider.key,
      stripeWebhookSecret: secret,
      stripeApiUrl: url,
    })
  })
  await service.sql(`UPDATE prices SET valid_from = '2026-01-01'`)
  await service.sql('DELETE FROM payment_methods')
  await service.sql(`UPDATE organizations SET payment_state = 'never', payment_customer_id = ''`)
  await service.clock.freeze('2026-11-10T00:00:00Z')
  const { email, password } = service.credentials
  const body = { grant_type: 'password', email, password }
  owner = (await service.ok('authToken', { token: null, body })).access_token
  await keepSessions(service)
})
afterAll(async () => {
  await service.close()
  await provider.stop()
})
beforeEach(() => {
  provider.fault = 'none'
  provider.hold = null
})

const link = async () => new URL((await service.ok('organizationBilling', { token: owner })).url).pathname
const post = (path: string) => fetch(`${service.url}${path}`, { method: 'POST' })
const urlOf = async (response: Response) => ((await response.json()) as { url: string }).url
const organization = async () => {
  const [row] = await service.sql<{ payment_state: string; payment_customer_id: string }>(
    'SELECT payment_state, payment_customer_id FROM organizations WHERE id = $1',
    [service.credentials.organization_id],
  )
  return row!
}
const eventsOf = (type: string) =>
  service.sql<{ data: Record<string, unknown> }>(
    'SELECT data FROM events_written WHERE type = $1 ORDER BY seq',
    [type],
  )

interface StripeEvent {
  id?: string
  type: string
  object: Record<string, unknown>
  previous?: Record<string, unknown>
}
const payloadOf = ({ id = `evt_${uuid()}`, type, object, previous }: StripeEvent) =>
  JSON.stringify({ id, object: 'event', type, data: { object, previous_attributes: previous } })
const send = async (payload: string, signature?: string) => {
  const header = signature ?? Stripe.webhooks.generateTestHeaderString({ payload, secret })
  const response = await fetch(`${service.url}/billing/stripe/webhook`, {
    method: 'POST',
    body: payload,
    headers: { 'content-type': 'application/json', 'stripe-signature': header },
  })
  return response.status
}
const sendEvent = (event: StripeEvent) => send(payloadOf(event))

test('the Stripe customer is created once, when it is first needed, and kept', async () => {
  const path = await link()
  expect(provider.customers.size).toBe(0)
  provider.fault = 'away'
  expect((await post(`${path}/provider`)).status).toBe(503)
  provider.fault = 'none'
  const responses = await Promise.all([1, 2, 3].map(() => post(`${path}/provider`)))
  for (const answer of responses) {
    expect(answer.status).toBe(200)
    expect(await urlOf(answer)).toMatch(/^https:\/\/checkout\.stripe\.com\//)
  }
  expect([...provider.customers.values()]).toMatchObject([
    { id: 'cus_1', organization: service.credentials.organization_id },
  ])
  expect((await service.ok('organizationGet', { token: owner })).payment_customer_id).toBe('cus_1')
})

test('the billing link of a new Stripe customer leads to a set-up session, whose return links contain no secret', async () => {
  const [first] = provider.sessions
  expect(first).toMatchObject({ kind: 'checkout', fields: { mode: 'setup', customer: 'cus_1' } })
  expect(JSON.stringify(provider.sessions)).not.toContain('slpb_')
  const back = new URL(first!.fields.success_url!)
  expect(back.pathname).toBe('/billing/returned')
  expect((await fetch(back)).status).toBe(200)
})

test('the billing link of a write key leads to a set-up session while no payment method is active, and never to the portal', async () => {
  const keyLink = async () => new URL((await service.ok('organizationBilling')).url).pathname
  const earlierCount = provider.sessions.length
  const path = await keyLink()
  const dashboard = await (await fetch(`${service.url}${path}/data`)).json()
  expect(dashboard).toMatchObject({ provider: 'stripe', test_cards: [] })
  expect(await urlOf(await post(`${path}/provider`))).toMatch(/^https:\/\/checkout\.stripe\.com\//)
  // A declined method is still on record, so the billing link of an owner would lead to the portal.
  await service.sql(`UPDATE organizations SET payment_state = 'declined'`)
  await service.sql(
    `INSERT INTO payment_methods (organization_id, provider, reference, brand, last4, expires_month, expires_year)
     VALUES ($1, 'stripe', 'pm_old', 'visa', '0341', 12, 2030)`,
    [service.credentials.organization_id],
  )
  await post(`${path}/provider`)
  await service.sql(`UPDATE organizations SET payment_state = 'active'`)
  expect((await post(`${path}/provider`)).status).toBe(409)
  expect((await post(`${path}/card/remove`)).status).toBe(403)
  expect(provider.sessions.slice(earlierCount)).toMatchObject([
    { kind: 'checkout', fields: { mode: 'setup' } },
    { kind: 'checkout', fields: { mode: 'setup' } },
  ])
  await service.sql('DELETE FROM payment_methods')
  await service.sql(`UPDATE organizations SET payment_state = 'never'`)
})

const attached = () => ({
  type: 'payment_method.attached',
  object: { object: 'payment_method', customer: 'cus_1' },
})

test('a Stripe event is accepted only if its signature matches the received bytes', async () => {
  const payload = payloadOf(attached())
  const header = Stripe.webhooks.generateTestHeaderString({ payload, secret })
  const old = Stripe.webhooks.generateTestHeaderString({
    payload,
    secret,
    timestamp: Math.floor(Date.now() / 1000) - 3600,
  })
  const foreign = Stripe.webhooks.generateTestHeaderString({ payload, secret: 'whsec_other' })
  expect(await send(`${payload} `, header)).toBe(400)
  expect(await send(payload, old)).toBe(400)
  expect(await send(payload, foreign)).toBe(400)
  expect(await send(payload, '')).toBe(400)
  expect((await organization()).payment_state).toBe('never')
  expect(await send(payload, header)).toBe(200)
})

test('a Stripe event about a new payment method enables the API and makes the method the default', async () => {
  provider.attach('cus_1', '4242')
  expect(await sendEvent(attached())).toBe(200)
  expect((await organization()).payment_state).toBe('active')
  expect(provider.customers.get('cus_1')!.default).toBe('pm_1')
  await expect.poll(async () => (await service.call('vmList')).status).toBe(200)
  const dashboard = await (await fetch(`${service.url}${await link()}/data`)).json()
  expect(dashboard).toMatchObject({ payment_method: { brand: 'visa', last4: '4242' } })
  expect(await urlOf(await post(`${await link()}/provider`))).toContain('https://portal.stripe.com/')
})

test('a Stripe event that is delivered twice has no second effect', async () => {
  const payload = payloadOf({ id: 'evt_twice', ...attached() })
  expect(await send(payload)).toBe(200)
  const before = [provider.requests.length, (await eventsOf('organization.payment_method_set')).length]
  expect(await send(payload)).toBe(200)
  expect([provider.requests.length, (await eventsOf('organization.payment_method_set')).length]).toEqual(
    before,
  )
})

test('Stripe events have the same result in every order, because only the current state at Stripe counts', async () => {
  const customer = provider.customers.get('cus_1')!
  const failed = { type: 'invoice.payment_failed', object: { object: 'invoice', customer: 'cus_1' } }
  const paid = { type: 'invoice.paid', object: { object: 'invoice', customer: 'cus_1', period_end: 0 } }
  customer.delinquent = true
  expect(await sendEvent(failed)).toBe(200)
  expect((await organization()).payment_state).toBe('declined')
  customer.delinquent = false
  // The failure happened first at Stripe, but arrives last.
  expect(await sendEvent(paid)).toBe(200)
  expect(await sendEvent(failed)).toBe(200)
  expect((await organization()).payment_state).toBe('active')
})

test('an older state read from Stripe never overwrites a newer one', async () => {
  const customer = provider.customers.get('cus_1')!
  let release = () => {}
  provider.hold = new Promise((resolve) => {
    release = resolve
  })
  customer.delinquent = true
  const before = provider.requests.length
  const slow = sendEvent(attached())
  await expect.poll(() => provider.requests.length).toBeGreaterThan(before)
  provider.hold = null
  customer.delinquent = false
  await sendEvent(attached())
  release()
  expect(await slow).toBe(200)
  expect((await organization()).payment_state).toBe('active')
})

test('Stripe is asked to send an event again if the current state could not be read from Stripe', async () => {
  const payload = payloadOf({ id: 'evt_later', ...attached() })
  provider.fault = 'away'
  expect(await send(payload)).toBe(503)
  provider.fault = 'none'
  expect(await send(payload)).toBe(200)
})

test('Stripe events of unknown customers and kinds are ignored', async () => {
  expect(
    await sendEvent({
      type: 'payment_method.attached',
      object: { object: 'payment_method', customer: 'cus_9' },
    }),
  ).toBe(200)
  expect(await sendEvent({ type: 'coupon.created', object: { object: 'coupon' } })).toBe(200)
})

/** Sets the clock and runs the task, so that no other day is billed and each fault affects only one run. */
const billAt = async (at: string) => {
  await service.clock.freeze(at)
  await service.server.billing.once()
}
const billAfter = async (interval: string) => {
  await service.clock.advance(interval)
  await service.server.billing.once()
}
const valuesOf = (day: string) =>
  provider.events
    .filter(({ identifier }) => identifier.endsWith(day))
    .map(({ payload }) => Number(payload.value))
const states = async () =>
  (await service.sql<{ state: string }>('SELECT state FROM meter_reports ORDER BY day')).map(
    ({ state }) => state,
  )

test('usage is sent to Stripe once a day, under a stable identifier', async () => {
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  await service.ended(operation.operation_id)
  await service.clock.freeze('2026-11-11T00:05:00Z')
  await Promise.all([1, 2, 3].map(() => service.server.billing.once()))
  expect(provider.events).toEqual([
    {
      identifier: `slipway-${service.credentials.organization_id}-2026-11-10`,
      event_name: 'slipway_usage_cents',
      timestamp: Date.parse('2026-11-10T23:59:59Z') / 1000,
      payload: { stripe_customer_id: 'cus_1', value: '3480' },
    },
  ])
  expect(provider.meters).toHaveLength(1)
  expect(await states()).toEqual(['sent'])
})

test('usage is sent to Stripe again after an outage, and is counted only once if just the response was lost', async () => {
  provider.fault = 'away'
  await billAt('2026-11-12T00:05:00Z')
  expect(await states()).toEqual(['sent', 'pending'])
  provider.fault = 'lost-answer'
  await billAfter('1 hour')
  expect(await states()).toEqual(['sent', 'pending'])
  provider.fault = 'none'
  await billAfter('1 hour')
  expect(valuesOf('2026-11-11')).toEqual([3480])
  expect(await states()).toEqual(['sent', 'sent'])
})

test('usage older than a day is compared with what Stripe has counted before it is sent again', async () => {
  provider.fault = 'lost-answer'
  await billAt('2026-11-13T00:05:00Z')
  expect(valuesOf('2026-11-12')).toEqual([3480])
  provider.fault = 'none'
  provider.remembered.clear()
  await billAfter('30 hours')
  expect(valuesOf('2026-11-12')).toEqual([3480])

  // Usage that was never counted is sent, even late.
  provider.fault = 'away'
  await billAt('2026-11-15T00:05:00Z')
  // Simulates an earlier attempt whose outcome is unknown.
  await service.sql(`UPDATE meter_reports SET tried_at = slipway_now() WHERE day = '2026-11-14'`)
  provider.fault = 'none'
  await billAfter('23 hours 50 minutes')
  expect(valuesOf('2026-11-14')).toEqual([3480])
  expect(new Set(await states())).toEqual(new Set(['sent']))
})

test('operators are notified when Stripe has counted an amount other than the one sent, or no longer accepts the usage', async () => {
  provider.fault = 'lost-answer'
  await billAt('2026-11-16T00:05:00Z')
  provider.events.at(-1)!.payload.value = '7'
  provider.remembered.clear()
  provider.fault = 'none'
  await billAt('2026-11-17T00:04:00Z')
  expect(await eventsOf('billing.meter_disputed')).toMatchObject([
    { data: { day: '2026-11-15', usd_cents: 3480, reason: 'the provider has counted 7 cents' } },
  ])
  provider.fault = 'away'
  await billAt('2026-11-17T00:05:00Z')
  provider.fault = 'none'
  await billAt('2026-12-24T00:00:00Z')
  const disputed = await eventsOf('billing.meter_disputed')
  expect(disputed.map(({ data }) => data.day)).toContain('2026-11-16')
  expect(await states()).not.toContain('pending')
})

test('usage sent to Stripe adds up over a month to the invoice, to the cent', async () => {
  // Sets prices that leave fractions of a cent each day.
  await service.sql(`UPDATE prices SET usd = 0.33337 WHERE product_name = 'a100.1x'`)
  const disk = await service.ok('diskCreate', {
    body: { name: 'odd', size: '37GiB', location: 'us-east1-a' },
  })
  await service.ended(disk.operation.operation_id)
  for (let day = 1; day <= 31; day++) {
    await billAt(`2027-01-${String(day).padStart(2, '0')}T00:05:00Z`)
  }
  await billAt('2027-02-01T00:05:00Z')
  const { items } = await service.ok('organizationInvoices', { token: owner })
  const january = items.find(({ period_start }) => period_start.startsWith('2027-01'))!
  const sent = provider.events
    .filter(({ identifier }) => identifier.includes('-2027-01-'))
    .reduce((sum, { payload }) => sum + Number(payload.value), 0)
  expect(sent).toBe(Math.round(january.usd * 100))
  expect(january.state).toBe('issued')
})

test('an invoice is marked as paid when Stripe reports the invoice for that month as paid', async () => {
  const sendPaid = (period_end: string) =>
    sendEvent({
      type: 'invoice.paid',
      object: { object: 'invoice', customer: 'cus_1', period_end: Date.parse(period_end) / 1000 },
    })
  const state = async () =>
    (await service.ok('organizationInvoices', { token: owner })).items.find(({ period_start }) =>
      period_start.startsWith('2027-01'),
    )!.state
  expect(await sendPaid('2027-01-15T00:00:00Z')).toBe(200)
  expect(await state()).toBe('issued')
  expect(await sendPaid('2027-02-01T00:00:00Z')).toBe(200)
  expect(await state()).toBe('paid')
})

test('a payment method can be removed only when nothing is running, and is then removed at Stripe', async () => {
  expect((await post(`${await link()}/card/remove`)).status).toBe(409)
  const { items: vms } = await service.ok('vmList')
  for (const { id } of vms) {
    const { operation } = await service.ok('vmDelete', { params: { vm_id: id } })
    await service.ended(operation.operation_id)
  }
  const { items: disks } = await service.ok('diskList')
  for (const { id } of disks) {
    const { operation } = await service.ok('diskDelete', { params: { disk_id: id! } })
    await service.ended(operation.operation_id)
  }
  expect((await post(`${await link()}/card/remove`)).status).toBe(200)
  expect(provider.methods.filter(({ customer }) => customer !== null)).toEqual([])
  expect((await organization()).payment_state).toBe('removed')
  const detached = {
    type: 'payment_method.detached',
    object: { object: 'payment_method', customer: null },
    previous: { customer: 'cus_1' },
  }
  expect(await sendEvent(detached)).toBe(200)
  expect((await organization()).payment_state).toBe('removed')
})
