import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Method {
  id: string
  customer: string | null
  last4: string
}

interface MeterEvent {
  identifier: string
  event_name: string
  timestamp: number
  payload: { stripe_customer_id: string; value: string }
}

/**
 * A local server with the few Stripe endpoints that we use, over HTTP as the library calls them. It rejects what Stripe
 * would reject.
 */
export class StripeStandIn {
  readonly key = 'sk_test_stand_in'
  readonly customers = new Map<
    string,
    { id: string; name: string; organization: string; default: string | null; delinquent: boolean }
  >()
  readonly methods: Method[] = []
  readonly events: MeterEvent[] = []
  readonly sessions: { kind: string; fields: Record<string, string> }[] = []
  readonly meters: { id: string; event_name: string }[] = []
  readonly requests: string[] = []
  /** Identifiers of the meter events that are remembered. Stripe forgets them after a day. */
  readonly remembered = new Set<string>()
  /** `away` rejects all requests. `lost-answer` does what a POST requests, but returns an error. */
  fault: 'none' | 'away' | 'lost-answer' = 'none'
  /** Delays the response with a customer until the test resolves it. */
  hold: Promise<void> | null = null
  readonly #byIdempotencyKey = new Map<string, string>()
  #server: Server | undefined

  async start(): Promise<string> {
    this.#server = createServer(async (request, response) => {
      const { status, body } = await this.#answer(request).catch((error) => ({
        status: 400,
        body: { error: { type: 'invalid_request_error', message: String(error.message) } },
      }))
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
    await new Promise<void>((resolve) => this.#server!.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise((resolve) => this.#server?.close(resolve))
  }

  attach(customer: string, last4: string): Method {
    const method = { id: `pm_${this.methods.length + 1}`, customer, last4 }
    this.methods.unshift(method)
    return method
  }

  async #answer(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    const url = new URL(request.url ?? '', 'http://stripe')
    const call = `${request.method} ${url.pathname}`
    let text = ''
    for await (const chunk of request) text += chunk
    const fields = Object.fromEntries(new URLSearchParams(text))
    this.requests.push(call)
    if (request.headers.authorization !== `Bearer ${this.key}`)
      return { status: 401, body: { error: { type: 'invalid_request_error', message: 'Invalid API Key' } } }
    if (this.fault === 'away') return { status: 503, body: { error: { type: 'api_error', message: 'away' } } }
    const body = await this.#do(call, url, fields, String(request.headers['idempotency-key'] ?? ''))
    return this.fault === 'lost-answer' && request.method === 'POST'
      ? { status: 500, body: { error: { type: 'api_error', message: 'lost' } } }
      : { status: 200, body }
  }

  async #do(
    call: string,
    url: URL,
    fields: Record<string, string>,
    idempotencyKey: string,
  ): Promise<unknown> {
    const [, , resource, id, sub] = url.pathname.split('/')
    if (call === 'POST /v1/customers') return this.#createCustomer(fields, idempotencyKey)
    if (resource === 'customers' && id) {
      const customer = this.customers.get(id)
      if (!customer) throw new Error(`No such customer: ${id}`)
      if (sub === 'payment_methods')
        return list(this.methods.filter((method) => method.customer === id).map(viewMethod))
      if (call.startsWith('POST'))
        customer.default = required(fields, 'invoice_settings[default_payment_method]')
      const seen = viewCustomer(customer)
      if (call.startsWith('GET') && this.hold) await this.hold
      return seen
    }
    if (call === 'POST /v1/checkout/sessions' || call === 'POST /v1/billing_portal/sessions') {
      const kind = resource === 'checkout' ? 'checkout' : 'portal'
      if (!this.customers.has(required(fields, 'customer'))) throw new Error('No such customer')
      this.sessions.push({ kind, fields })
      return { id: 's_1', object: 'session', url: `https://${kind}.stripe.com/s_${this.sessions.length}` }
    }
    if (resource === 'payment_methods' && sub === 'detach') {
      const method = this.methods.find((each) => each.id === id)
      if (!method?.customer) throw new Error('not attached')
      method.customer = null
      return viewMethod(method)
    }
    if (call === 'GET /v1/billing/meters') return list(this.meters.map(viewMeter))
    if (call === 'POST /v1/billing/meters') {
      if (required(fields, 'default_aggregation[formula]') !== 'sum') throw new Error('sum')
      const meter = { id: `mtr_${this.meters.length + 1}`, event_name: required(fields, 'event_name') }
      this.meters.push(meter)
      return viewMeter(meter)
    }
    if (call === 'POST /v1/billing/meter_events') return this.#takeMeterEvent(fields)
    if (url.pathname.endsWith('/event_summaries')) return this.#summaries(url)
    throw new Error(`Unrecognized request URL (${call})`)
  }

  #createCustomer(fields: Record<string, string>, idempotencyKey: string) {
    const known = this.#byIdempotencyKey.get(idempotencyKey)
    const id = known ?? `cus_${this.customers.size + 1}`
    this.#byIdempotencyKey.set(idempotencyKey, id)
    if (!known)
      this.customers.set(id, {
        id,
        name: required(fields, 'name'),
        organization: required(fields, 'metadata[slipway_organization_id]'),
        default: null,
        delinquent: false,
      })
    return viewCustomer(this.customers.get(id)!)
  }

  #takeMeterEvent(fields: Record<string, string>) {
    const event: MeterEvent = {
      identifier: required(fields, 'identifier'),
      event_name: required(fields, 'event_name'),
      timestamp: Number(required(fields, 'timestamp')),
      payload: {
        stripe_customer_id: required(fields, 'payload[stripe_customer_id]'),
        value: required(fields, 'payload[value]'),
      },
    }
    if (event.identifier.length > 100) throw new Error('identifier is too long')
    if (!/^[1-9][0-9]*$/.test(event.payload.value)) throw new Error('value must be a positive whole number')
    if (!this.meters.some(({ event_name }) => event_name === event.event_name))
      throw new Error('no such meter')
    if (this.remembered.has(event.identifier)) throw new Error(`An event already exists: ${event.identifier}`)
    this.remembered.add(event.identifier)
    this.events.push(event)
    return { object: 'billing.meter_event', ...event }
  }

  #summaries(url: URL) {
    const [from, to] = ['start_time', 'end_time'].map((name) => Number(url.searchParams.get(name)))
    if (from! % 60 !== 0 || to! % 60 !== 0) throw new Error('must be aligned with minute boundaries')
    const sum = this.events
      .filter((event) => event.payload.stripe_customer_id === url.searchParams.get('customer'))
      .filter((event) => event.timestamp >= from! && event.timestamp < to!)
      .reduce((total, event) => total + Number(event.payload.value), 0)
    const summary = { id: 'sum_1', object: 'billing.meter_event_summary', aggregated_value: sum }
    return list(sum === 0 ? [] : [summary])
  }
}

function required(fields: Record<string, string>, name: string): string {
  const value = fields[name]
  if (!value) throw new Error(`Missing required param: ${name}.`)
  return value
}

const list = (data: unknown[]) => ({ object: 'list', data, has_more: false, url: '/' })

const viewMethod = ({ id, customer, last4 }: Method) => ({
  id,
  object: 'payment_method',
  type: 'card',
  customer,
  card: { brand: 'visa', last4, exp_month: 12, exp_year: 2030 },
})

const viewCustomer = ({
  id,
  name,
  default: chosen,
  delinquent,
}: {
  id: string
  name: string
  default: string | null
  delinquent: boolean
}) => ({
  id,
  object: 'customer',
  name,
  delinquent,
  invoice_settings: { default_payment_method: chosen },
})

const viewMeter = ({ id, event_name }: { id: string; event_name: string }) => ({
  id,
  object: 'billing.meter',
  event_name,
  status: 'active',
})
