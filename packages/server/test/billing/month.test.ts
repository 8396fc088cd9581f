import { vmTypes } from '@slipway/contract'
import { keepSessions } from '@slipway/testing/people.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'

/**
 * Tests the bill of four organizations for February 2028, which has 29 days. The test drives one of them through the
 * API while it moves the clock, and computes the expected costs from the audit log. The others have the history of
 * thousands of VMs and disks, written in bulk. Nothing here uses the arithmetic of the service.
 */
const monthStart = Date.parse('2028-02-01T00:00:00Z')
const monthEnd = Date.parse('2028-03-01T00:00:00Z')
const hourMs = 3_600_000
const dayMs = 24 * hourMs

interface Span {
  organization: string
  project: string
  product: string
  quantity: bigint
  from: number
  to: number
}

/** Prices in units of 10^-8 USD, by the time from which they are valid. There is no price before the first. */
const prices: Record<string, [from: number, e8: bigint][]> = {
  ...Object.fromEntries(vmTypes.map(({ name, gpuCount }) => [name, [[0, BigInt(gpuCount) * 145_000_000n]]])),
  'a100.1x': [
    [0, 145_000_000n],
    [Date.parse('2028-02-14T13:37:00.123Z'), 133_333_333n],
    [Date.parse('2028-02-28T23:59:59.999Z'), 99_999_999n],
  ],
  'a40.1x': [[Date.parse('2028-02-20T00:00:00Z'), 90_000_001n]],
  'a40.2x': [],
  'persistent-ssd': [[0, 13_000n]],
  'shared-volume': [[0, 13_000n]],
}

let service: TestService
let owner: string
beforeAll(async () => {
  service = await startService()
  await service.clock.freeze('2028-01-31T12:00:00Z')
  await service.sql('DELETE FROM prices')
  for (const [product, versions] of Object.entries(prices))
    for (const [from, e8] of versions)
      await service.sql(
        'INSERT INTO prices (product_name, valid_from, unit, usd) VALUES ($1, $2, $3, $4::numeric / 100000000)',
        [product, new Date(from).toISOString(), product.includes('.') ? 'vm_hour' : 'gb_hour', String(e8)],
      )
  const { email, password } = service.credentials
  const body = { grant_type: 'password', email, password }
  owner = (await service.ok('authToken', { token: null, body })).access_token
  await keepSessions(service)
})
afterAll(() => service.close())

const random = (seed: number) => () => {
  seed = (seed * 48_271) % 2_147_483_647
  return seed / 2_147_483_647
}

/** Returns the cost of a span, in 10^-8 USD-milliseconds per hour. */
function costOf({ product, quantity, from, to }: Span): bigint {
  const versions = prices[product] ?? []
  return versions.reduce((sum, [since, e8], index) => {
    const until = versions[index + 1]?.[0] ?? Number.POSITIVE_INFINITY
    const ms = Math.min(to, until, monthEnd) - Math.max(from, since, monthStart)
    return ms > 0 ? sum + BigInt(ms) * quantity * e8 : sum
  }, 0n)
}

/** Returns the lines by project and product, each rounded once to cents, with half a cent rounded up. */
function invoicesOf(spans: Span[]) {
  const lines = new Map<string, { organization: string; cost: bigint; quantityMs: bigint }>()
  for (const span of spans) {
    const ms = Math.min(span.to, monthEnd) - Math.max(span.from, monthStart)
    if (ms <= 0) continue
    const key = `${span.project} ${span.product}`
    const line = lines.get(key) ?? { organization: span.organization, cost: 0n, quantityMs: 0n }
    lines.set(key, {
      ...line,
      cost: line.cost + costOf(span),
      quantityMs: line.quantityMs + BigInt(ms) * span.quantity,
    })
  }
  const unitsPerCent = 1_000_000n * BigInt(hourMs)
  const invoices = new Map<string, Map<string, { cents: number; hours: number }>>()
  for (const [key, { organization, cost, quantityMs }] of lines) {
    const cents = Number((2n * cost + unitsPerCent) / (2n * unitsPerCent))
    const hours = Number(quantityMs) / hourMs
    invoices.set(organization, (invoices.get(organization) ?? new Map()).set(key, { cents, hours }))
  }
  return invoices
}

const issued = async (organization_id: string) => {
  const { items } = await service.ok('organizationInvoices', { token: owner, params: { organization_id } })
  return items.find(({ period_start }) => period_start === '2028-02-01T00:00:00.000Z')!
}

/** Writes thousands of VMs and disks. Some started before the month, and some continue after it. */
async function writeHistory(organizationCount: number, spanCount: number): Promise<Span[]> {
  const next = random(20_280_201)
  const spans: (Span & { resource: string })[] = []
  const [{ id: user } = { id: '' }] = await service.sql<{ id: string }>(
    'SELECT user_id AS id FROM memberships',
  )
  const projects: { organization: string; project: string }[] = []
  for (let n = 0; n < organizationCount; n++) {
    const organization = uuid()
    await service.sql('INSERT INTO organizations (id, name) VALUES ($1, $2)', [organization, `Lab ${n}`])
    await service.sql(`INSERT INTO memberships VALUES ($1, $2, 'owner')`, [organization, user])
    for (const name of ['train', 'serve']) {
      const project = uuid()
      await service.sql('INSERT INTO projects (id, organization_id, name) VALUES ($1, $2, $3)', [
        project,
        organization,
        name,
      ])
      projects.push({ organization, project })
    }
  }
  for (let n = 0; n < spanCount; n++) {
    const isDisk = next() < 0.3
    const product = isDisk
      ? (['persistent-ssd', 'shared-volume'] as const)[Math.floor(next() * 2)]!
      : vmTypes[Math.floor(next() * vmTypes.length)]!.name
    const resource = uuid()
    let from = Math.floor(monthStart - 3 * dayMs + next() * 33 * dayMs)
    // A VM that was stopped and started again, or a disk that was grown: several spans of one resource that never
    // overlap.
    for (let part = 0; part < 1 + Math.floor(next() * 3); part++) {
      const to = from + 1 + Math.floor(next() ** 3 * 12 * dayMs)
      const quantity = isDisk ? BigInt(1 + Math.floor(next() * 10_240)) : 1n
      spans.push({ ...projects[Math.floor(n % projects.length)]!, product, quantity, from, to, resource })
      from = to + Math.floor(next() * hourMs)
    }
  }
  const column = <T>(read: (span: (typeof spans)[number]) => T) => spans.map(read)
  await service.sql(
    `INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
     SELECT project, location, type, resource, product, quantity, tstzrange(since, until)
     FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::timestamptz[], $8::timestamptz[])
       AS t (project, location, type, resource, product, quantity, since, until)`,
    [
      column(({ project }) => project),
      column(({ from }) => (from % 2 ? 'us-east1-a' : 'eu-north1-a')),
      column(({ product }) => (product.includes('.') ? 'vm' : 'disk')),
      column(({ resource }) => resource),
      column(({ product }) => product),
      column(({ quantity }) => String(quantity)),
      column(({ from }) => new Date(from).toISOString()),
      column(({ to }) => new Date(to).toISOString()),
    ],
  )
  return spans
}

/** Returns the resources of a project and their times, according to its audit log. */
async function spansOfLog(): Promise<Span[]> {
  const { organization_id: organization, project_id: project } = service.credentials
  const events = await service.sql<{
    resource_id: string
    type: string
    at: Date
    data: Record<string, string>
  }>(
    `SELECT resource_id, type, created_at AS at, data FROM events_written
     WHERE project_id = $1 AND resource_type IN ('vm', 'disk') ORDER BY seq`,
    [project],
  )
  const billed = new Set(['vm.running', 'vm.stopping', 'vm.resetting', 'vm.crashed'])
  const states = /^vm\.(running|stopping|shutoff|starting|resetting|crashed|unreachable|deleting)$/
  const spans: Span[] = []
  const known = new Map<string, { product: string; quantity: bigint; wanted: bigint; since: number | null }>()
  for (const { resource_id, type, at, data } of events) {
    const gib = (size: string) => BigInt(size.slice(0, -3)) * (size.endsWith('TiB') ? 1024n : 1n)
    if (type === 'vm.creating')
      known.set(resource_id, { product: data.type!, quantity: 1n, wanted: 1n, since: null })
    if (type === 'disk.creating')
      known.set(resource_id, {
        product: 'persistent-ssd',
        quantity: 0n,
        wanted: gib(data.size!),
        since: null,
      })
    const resource = known.get(resource_id)!
    const close = () => {
      if (resource.since !== null)
        spans.push({
          organization,
          project,
          product: resource.product,
          quantity: resource.quantity,
          from: resource.since,
          // The clock is frozen between changes, but a meter lasts at least a millisecond.
          to: Math.max(at.getTime(), resource.since + 1),
        })
      resource.since = null
    }
    if (type === 'vm.updating' && data.type) resource.product = data.type
    if (type === 'disk.resizing') resource.wanted = gib(data.size!)
    if (type === 'disk.available') {
      close()
      Object.assign(resource, { since: at.getTime(), quantity: resource.wanted })
    }
    if (type === 'disk.deleted') close()
    if (states.test(type)) {
      if (!billed.has(type)) close()
      else resource.since ??= at.getTime()
    }
  }
  for (const { product, quantity, since } of known.values())
    if (since !== null)
      spans.push({ organization, project, product, quantity, from: since, to: Number.POSITIVE_INFINITY })
  return spans
}

async function driveThroughApi(): Promise<void> {
  const next = random(29)
  const vms: string[] = []
  const disks: { id: string; gib: number }[] = []
  const ended = async (call: Promise<{ operation: { operation_id: string } }>) => {
    const operation = await service.ended((await call).operation.operation_id)
    expect(operation).toMatchObject({ state: 'SUCCEEDED' })
    return operation.metadata.id
  }
  const patch = (vm_id: string, body: unknown) => ended(service.ok('vmUpdate', { params: { vm_id }, body }))
  for (let at = monthStart - 6 * hourMs; at < monthEnd; at += Math.floor((0.5 + next()) * 3 * dayMs)) {
    await service.clock.freeze(new Date(at).toISOString())
    await service.server.reconciler.reports()
    await service.server.billing.once()
    vms.push(
      await ended(service.ok('vmCreate', { body: vmBody({ type: next() < 0.6 ? 'a100.1x' : 'a40.1x' }) })),
    )
    const gib = 1 + Math.floor(next() * 500)
    const body = { name: `disk-${at}`, size: `${gib}GiB`, location: 'us-east1-a' }
    disks.push({ id: await ended(service.ok('diskCreate', { body })), gib })
    await service.clock.advance(`${Math.floor(next() * 20 * hourMs)} milliseconds`)
    await service.server.reconciler.reports()
    const vm = vms[Math.floor(next() * vms.length)]!
    const { state, type } = await service.ok('vmGet', { params: { vm_id: vm } })
    if (state === 'STATE_RUNNING') await patch(vm, { action: next() < 0.7 ? 'STOP' : 'RESET' })
    else {
      await patch(vm, { type: type.startsWith('a100') ? 'a100.2x' : 'a40.2x' })
      await patch(vm, { action: 'START' })
    }
    const disk = disks[Math.floor(next() * disks.length)]!
    disk.gib += 24
    await ended(service.ok('diskUpdate', { params: { disk_id: disk.id }, body: { size: `${disk.gib}GiB` } }))
    if (vms.length > 4) await ended(service.ok('vmDelete', { params: { vm_id: vms.shift()! } }))
    if (disks.length > 4) await ended(service.ok('diskDelete', { params: { disk_id: disks.shift()!.id } }))
  }
}

test('the invoices for a month of changes equal an independent calculation, to the cent', async () => {
  const history = await writeHistory(3, 4000)
  await driveThroughApi()
  await service.clock.freeze('2028-03-01T00:05:00Z')
  const other = await service.another()
  await Promise.all([service.server, other].map(({ billing }) => billing.once()))

  const log = await spansOfLog()
  expect(log.length).toBeGreaterThan(25)
  const expected = invoicesOf([...history, ...log])
  expect(expected.size).toBe(4)
  for (const [organization, lines] of expected) {
    const invoice = await issued(organization)
    expect(
      new Map(
        invoice.lines.map((line) => [`${line.project_id} ${line.product_name}`, Math.round(line.usd * 100)]),
      ),
    ).toEqual(new Map([...lines].map(([key, { cents }]) => [key, cents])))
    for (const line of invoice.lines)
      expect(line.quantity).toBeCloseTo(lines.get(`${line.project_id} ${line.product_name}`)!.hours, 5)
    const total = [...lines.values()].reduce((sum, { cents }) => sum + cents, 0)
    expect(Math.round(invoice.usd * 100)).toBe(total)
    expect(total).toBeGreaterThan(10_000)
  }
})

test('the daily usage for a month of changes covers all 29 days and adds up to the same hours', async () => {
  const { organization_id } = service.credentials
  const query = { start_date: '2028-02-01', end_date: '2028-02-29' }
  const { items } = await service.ok('organizationUsage', { token: owner, query })
  expect(new Set(items.map(({ date }) => date)).size).toBe(29)
  const invoice = await issued(organization_id)
  for (const { product_name, quantity } of invoice.lines) {
    const used = items.filter((item) => item.product_name === product_name)
    expect(used.reduce((sum, item) => sum + item.quantity, 0)).toBeCloseTo(quantity, 3)
  }
})
