import { type Route, type RouteId, routeIds, routeOf } from '@slipway/contract'
import { openStream } from '@slipway/testing/event-stream.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { addKey, addOrganization, addProject, ownerToken, tokenOfNew } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/**
 * An operator's access to tenant data is recorded in the audit log: once per tenant and request, based on what the
 * response contains.
 */

let service: TestService
let operator: string
/** Two tenants that have a VM of the same name, and a third without resources. */
const tenants: { organization_id: string; project_id: string; token: string }[] = []
const script = '#!/bin/sh\nexport API_TOKEN=hunter2-of-the-tenant\n'

beforeAll(async () => {
  service = await startService()
  operator = service.credentials.operator_key
  const { organization_id, project_id } = service.credentials
  tenants.push({ organization_id, project_id, token: await ownerToken(service) })
  for (const name of ['Second', 'Empty']) {
    const id = await addOrganization(service.database, name)
    await service.sql(
      `INSERT INTO organization_quotas (organization_id, name, max)
       SELECT $1, name, max FROM organization_quotas WHERE organization_id = $2 ON CONFLICT DO NOTHING`,
      [id, organization_id],
    )
    const token = await tokenOfNew(service.database, { memberOf: { [id]: 'owner' } })
    tenants.push({ organization_id: id, project_id: await addProject(service, token, id, name), token })
  }
  for (const { project_id, token } of tenants.slice(0, 2)) {
    const body = {
      name: 'findable',
      type: 'a40.1x',
      location: 'us-east1-a',
      image: 'ubuntu24.04-nvidia:latest',
      ssh_public_key: sshKey,
      startup_script: script,
      shutdown_script: script,
    }
    const { operation } = await service.ok('vmCreate', { token, params: { project_id }, body })
    const params = { project_id, operation_id: operation.operation_id }
    await service.ok('operationGet', { token, params, query: { wait: 30 } })
  }
})
afterAll(() => service?.close())

/** Returns the organizations for which a request was recorded, in the order of `tenants`. */
async function recordedBy(request: (id: string) => Promise<unknown>): Promise<string[]> {
  const id = `reads-${crypto.randomUUID()}`
  await request(id)
  const rows = await service.sql<{
    resource_type: string
    resource_id: string
    actor: string
    client_address: string
  }>(
    `SELECT resource_type, resource_id, actor, client_address FROM events_written
     WHERE type = 'operator.read' AND request_id = $1`,
    [id],
  )
  for (const row of rows)
    expect(row).toMatchObject({
      resource_type: 'organization',
      actor: expect.stringMatching(/^operator_key:/),
      client_address: '127.0.0.1',
    })
  const known = tenants.map(({ organization_id }) => organization_id)
  return rows.map(({ resource_id }) => resource_id).toSorted((a, b) => known.indexOf(a) - known.indexOf(b))
}
const read = (id: RouteId, request: object) => (requestId: string) =>
  service.ok(id, { token: operator, headers: { 'x-request-id': requestId }, ...request })

const organizations = (...indices: number[]) => indices.map((index) => tenants[index]!.organization_id)

test('an unfiltered list records every tenant that it shows, and no other', async () => {
  for (const id of ['adminVmList', 'adminOperationList'] as const)
    expect(await recordedBy(read(id, {})), id).toEqual(organizations(0, 1))
  expect(await recordedBy(read('adminSearch', { query: { q: 'findable' } }))).toEqual(organizations(0, 1))
  expect(await recordedBy(read('adminEventList', { query: { limit: '500' } }))).toEqual(
    organizations(0, 1, 2),
  )
})

test('a filtered list records only the tenants that it shows, for every filter', async () => {
  const { organization_id, project_id } = tenants[1]!
  const [vm] = (await service.ok('adminVmList', { token: operator, query: { organization_id } })).items
  for (const [id, query] of [
    ['adminVmList', { organization_id }],
    ['adminVmList', { ids: vm!.id }],
    ['adminOperationList', { resource_id: vm!.id }],
    ['adminUserList', { organization_id }],
    ['adminSearch', { q: vm!.id }],
    ['adminEventList', { resource_id: vm!.id }],
    ['adminEventList', { project_id }],
    ['adminQuotaList', { project_id }],
  ] as const)
    expect(await recordedBy(read(id, { query })), JSON.stringify([id, query])).toEqual(organizations(1))
  const params = { organization_id }
  expect(await recordedBy(read('adminOrganizationQuotaList', { params }))).toEqual(organizations(1))
})

test('a response without tenant data records nothing', async () => {
  const { organization_id } = tenants[2]!
  for (const [id, query] of [
    ['adminVmList', { organization_id }],
    ['adminOperationList', { stuck: true }],
    ['adminSearch', { q: 'nothing-has-this-name' }],
    ['adminEventList', { type: 'operator.read' }],
    ['adminCapacityList', {}],
  ] as const)
    expect(await recordedBy(read(id, { query })), id).toEqual([])
})

test('an operator’s stream records each tenant once, when it first shows an event of that tenant', async () => {
  const id = `stream-${crypto.randomUUID()}`
  const headers = { authorization: `Bearer ${operator}`, accept: 'text/event-stream', 'x-request-id': id }
  const abort = new AbortController()
  const stream = await fetch(`${service.url}/v0.1/admin/events`, { headers, signal: abort.signal })
  let text = ''
  const reading = (async () => {
    for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) text += chunk
  })().catch(() => {})
  const recorded = async () =>
    (
      await service.sql<{ resource_id: string }>(
        `SELECT resource_id FROM events_written WHERE type = 'operator.read' AND request_id = $1`,
        [id],
      )
    ).map(({ resource_id }) => resource_id)
  const show = async ({ token, project_id }: (typeof tenants)[number]) => {
    const key = await addKey(service, token, project_id, 'read')
    await eventually(async () => text.includes(key.id))
  }
  expect(await recorded()).toEqual([])
  await show(tenants[0]!)
  await show(tenants[0]!)
  expect(await recorded()).toEqual(organizations(0))
  await show(tenants[2]!)
  expect(await recorded()).toEqual(organizations(0, 2))
  abort.abort()
  await reading
})

test('a tenant’s own stream records nothing', async () => {
  const { project_id, token } = tenants[0]!
  const before = await service.sql(`SELECT FROM events_written WHERE type = 'operator.read'`)
  const stream = await openStream(service.url, project_id, { token })
  await addKey(service, token, project_id, 'read')
  await stream.next(({ type }) => type === 'access_key.created')
  expect(await service.sql(`SELECT FROM events_written WHERE type = 'operator.read'`)).toHaveLength(
    before.length,
  )
})

const operatorReads = routeIds.filter((id) => {
  const route: Route = routeOf(id)
  return route.access === 'operator' && route.method === 'GET'
})

test('every operator route whose response names tenants records them, except the inventory', () => {
  const naming = operatorReads.filter((id) =>
    /"(project_id|organization_id)"/.test(JSON.stringify(routeOf(id).response)),
  )
  const unrecorded = naming.filter((id) => !routeOf(id).recordsTenants)
  expect(unrecorded.toSorted()).toEqual(
    [
      'adminAlertList',
      'adminHostGet',
      'adminHostList',
      'adminProjectList',
      'adminQuotaRequestList',
    ].toSorted(),
  )
  expect(naming.length).toBeGreaterThan(unrecorded.length)
})

test('no operator route shows the scripts of a VM', async () => {
  const { organization_id, project_id } = tenants[0]!
  const { items } = await service.ok('adminHostList', { token: operator, query: { limit: '500' } })
  const host = items.find(({ vms }) => vms.length > 0)!
  const operations = await service.ok('adminOperationList', { token: operator, query: {} })
  expect(operations.items[0]!.metadata.request).toMatchObject({ name: 'findable' })
  const { id: reservation_id } = await service.ok('adminReservationCreate', {
    token: operator,
    body: {
      organization_id,
      billing_project_id: project_id,
      type: 'a100.1x',
      location: 'us-east1-a',
      count: 1,
      contract_start_date: '2090-01-01T00:00:00Z',
      contract_end_date: '2090-02-01T00:00:00Z',
      usd_per_gpu_hour: 1,
    },
  })
  const users = await service.ok('adminUserList', { token: operator, query: { organization_id } })
  const user_id = users.items[0]!.id
  for (const id of operatorReads) {
    const params = {
      user_id,
      organization_id,
      project_id,
      host_id: host.id,
      gpu_id: host.gpus[0]!.id,
      operation_id: operations.items[0]!.operation_id,
      reservation_id,
    }
    const query = { adminQuotaList: { project_id }, adminSearch: { q: 'findable' } }[id as string] ?? {}
    const { status, body } = await service.call(id, { token: operator, params, query } as never)
    expect(status, id).toBe(200)
    expect(JSON.stringify(body), id).not.toContain('hunter2')
  }
})
