import { organizationQuotaNames } from '@slipway/contract'
import { addLocation, hostReport, reportHost, rows } from '@slipway/testing/fleet.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuid } from '../../src/domain/ids.ts'
import { placeVm } from '../../src/operations/vm/place.ts'
import { claimGpus, quarantineGpus } from '../../src/store/compute/placement.ts'
import { markDrainedHosts } from '../../src/store/fleet/fleet.ts'

let service: TestService
beforeAll(async () => {
  // Without a worker, nothing reports, settles or drains automatically.
  service = await startService((config) => {
    config.server.role = 'api'
  })
})
afterAll(() => service.close())

const call = (
  method: string,
  path: string,
  body?: unknown,
  // biome-ignore lint/suspicious/noExplicitAny: responses of every kind, validated by the harness
): Promise<{ status: number; body: any }> =>
  service.request(method, `/v0.1/admin${path}`, {
    token: service.credentials.operator_key,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

/** Adds a host that has reported, in a separate location. */
async function addHost(gpus = 2, storage: 'shared' | 'local' = 'shared') {
  const location = await addLocation(service.database, storage)
  await reportHost(service.database, location, hostReport('h', gpus))
  const { body } = await call('GET', `/hosts?location=${location}`)
  return { location, id: body.items[0].id as string, gpus: body.items[0].gpus as { id: string }[] }
}

let vmsMade = 0

/** Adds a VM of the demo project on the only host of a location. */
async function addVm(location: string, gpuCount = 1) {
  const vmId = uuid()
  await service.database.transaction(async (tx) => {
    const placed = (await placeVm(tx, { location, family: 'a100', gpuCount, allowedHosts: null }))!
    await claimGpus(tx, { vmId, gpuIds: placed.gpuIds })
    await tx.query({
      text: `INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, host_id, image,
               os_disk_id, interface_id, network_id, subnet_id, mac_address, private_address)
             SELECT w.id, n.project_id, w.id::text, 'a100.1x', 'a100', $3, $4, 'STATE_RUNNING', $5, 'debian12:latest',
               w.id, w.id, n.id, s.id, w.id::text, '172.27.0.9'::inet + $6::integer
             FROM (SELECT $1::uuid AS id) w, networks n JOIN subnets s ON s.network_id = n.id WHERE n.project_id = $2 LIMIT 1`,
      values: [vmId, service.credentials.project_id, gpuCount, location, placed.hostId, vmsMade++],
    })
  })
  return vmId
}

async function removeVm(vmId: string) {
  await service.database.transaction((tx) => quarantineGpus(tx, [vmId]))
  await service.database.query({ text: 'DELETE FROM vms WHERE id = $1', values: [vmId] })
}

test('an operator registers a host, which shows its GPUs after its first report', async () => {
  const body = { name: 'extra-1', location: 'us-east1-a', gpus: { model: 'A100 40GB PCIe', count: 4 } }
  const created = await call('POST', '/hosts', body)
  expect(created.body).toMatchObject({
    name: 'extra-1',
    engine: 'simulated',
    schedulable: true,
    state: 'down',
    last_report_at: '',
    gpus: [],
  })
  const [simulated] = await rows(service.database, `SELECT * FROM simulated_hosts WHERE name = 'extra-1'`)
  expect(simulated).toMatchObject({ location: 'us-east1-a', model: 'A100 40GB PCIe', gpu_count: 4 })
  await reportHost(service.database, 'us-east1-a', hostReport('extra-1', 4))
  const { body: host } = await call('GET', `/hosts/${created.body.id}`)
  expect(host).toMatchObject({ id: created.body.id, state: 'up' })
  expect(host.last_report_at).toMatch(/Z$/)
  expect(host.gpus).toHaveLength(4)
  expect(host.gpus[0]).toMatchObject({ model: 'A100 40GB PCIe', state: 'free', vm_id: '' })
  expect((await call('POST', '/hosts', body)).body.code).toBe('already_exists')
})

test.each([
  ['an unknown location', { name: 'x', location: 'mars-a' }, '/location'],
  ['no GPUs to simulate', { name: 'x', location: 'us-east1-a' }, '/gpus'],
  [
    'an unknown model',
    { name: 'x', location: 'us-east1-a', gpus: { model: 'A101', count: 1 } },
    '/gpus/model',
  ],
])('a host cannot be registered with %s', async (_, body, field) => {
  const response = await call('POST', '/hosts', body)
  expect(response.status).toBe(400)
  expect(response.body.details[0].field).toBe(field)
})

test('hosts are listed in pages, newest first, and can be filtered by location and state', async () => {
  const location = await addLocation(service.database)
  for (const name of ['a', 'b', 'c']) await reportHost(service.database, location, hostReport(name, 1))
  const first = (await call('GET', `/hosts?location=${location}&limit=2`)).body
  expect(first.items.map(({ name }: { name: string }) => name)).toEqual(['c', 'b'])
  const second = (
    await call('GET', `/hosts?location=${location}&limit=2&page_token=${first.next_page_token}`)
  ).body
  expect(second.items.map(({ name }: { name: string }) => name)).toEqual(['a'])
  expect(second.next_page_token).toBe('')
  expect((await call('GET', `/hosts?location=${location}&state=down`)).body.items).toEqual([])
  expect((await call('GET', `/events?page_token=${first.next_page_token}`)).status).toBe(400)
})

test('a cordoned host gets no VMs', async () => {
  const { location, id } = await addHost()
  const fits = () =>
    service.database.transaction((tx) =>
      placeVm(tx, { location, family: 'a100', gpuCount: 1, allowedHosts: null }),
    )
  expect((await call('PATCH', `/hosts/${id}`, { schedulable: false })).body.schedulable).toBe(false)
  expect(await fits()).toBeUndefined()
  await call('PATCH', `/hosts/${id}`, { schedulable: true })
  expect(await fits()).toBeDefined()
})

test('an empty host is drained immediately, and takes VMs again when it is uncordoned', async () => {
  const { id } = await addHost()
  expect((await call('POST', `/hosts/${id}/drain`)).body.state).toBe('drained')
  expect((await call('PATCH', `/hosts/${id}`, { schedulable: true })).body.state).toBe('up')
})

test('a host is drained when its last VM is removed, and the tenants are notified', async () => {
  const { location, id } = await addHost()
  const vmId = await addVm(location)
  const draining = (await call('POST', `/hosts/${id}/drain`)).body
  expect(draining.state).toBe('draining')
  expect(draining.vms).toEqual([
    {
      id: vmId,
      name: vmId,
      state: 'STATE_RUNNING',
      project_id: service.credentials.project_id,
      project_name: 'default',
      organization_name: 'Demo',
    },
  ])
  expect(await service.database.transaction((tx) => markDrainedHosts(tx))).toBe(0)
  const written = await rows<{ project_id: string | null; data: Record<string, unknown> }>(
    service.database,
    `SELECT project_id, data FROM events_written WHERE resource_id = $1 AND type = 'host.draining' ORDER BY seq`,
    id,
  )
  expect(written).toMatchObject([
    { project_id: null },
    { project_id: service.credentials.project_id, data: { location, vm_ids: [vmId] } },
  ])
  await removeVm(vmId)
  expect(await service.database.transaction((tx) => markDrainedHosts(tx))).toBe(1)
  expect((await call('GET', `/hosts/${id}`)).body.state).toBe('drained')
})

test.each([
  ['shared', 'drained'],
  ['local', 'draining'],
] as const)('a host with only a stopped VM and %s storage is %s', async (storage, state) => {
  const { location, id } = await addHost(2, storage)
  const vmId = await addVm(location)
  await service.database.transaction((tx) => quarantineGpus(tx, [vmId]))
  await service.database.query({
    text: `UPDATE vms SET state = 'STATE_SHUTOFF' WHERE id = $1`,
    values: [vmId],
  })
  expect((await call('POST', `/hosts/${id}/drain`)).body.state).toBe(state)
  const [vm] = (await call('GET', `/vms?ids=${vmId}`)).body.items
  expect(vm.host_id).toBe(storage === 'local' ? id : '')
})

test('a host can be removed only when it is empty', async () => {
  const { location, id } = await addHost()
  const vmId = await addVm(location)
  const refused = await call('DELETE', `/hosts/${id}`)
  expect([refused.status, refused.body.code]).toEqual([409, 'conflict'])
  await removeVm(vmId)
  expect((await call('DELETE', `/hosts/${id}`)).body).toEqual({})
  expect((await call('GET', `/hosts/${id}`)).status).toBe(404)
  expect((await call('DELETE', `/hosts/${id}`)).status).toBe(404)
})

test('an operator can withhold and release a GPU', async () => {
  const { location, gpus } = await addHost(1)
  const held = await call('PATCH', `/gpus/${gpus[0]!.id}`, { state: 'quarantined' })
  expect(held.body).toMatchObject({ id: gpus[0]!.id, state: 'quarantined', vm_id: '' })
  const capacity = (await call('GET', '/capacity')).body.items.find(
    (item: { location: string; family: string }) => item.location === location && item.family === 'a100',
  )
  expect(capacity).toMatchObject({ total: 1, free: 0, quarantined: 1, largest_type: '' })
  expect((await call('PATCH', `/gpus/${gpus[0]!.id}`, { state: 'free' })).body.state).toBe('free')
})

test('a GPU stays with the VM that uses it', async () => {
  const { location, gpus } = await addHost(1)
  const vmId = await addVm(location)
  for (const state of ['free', 'quarantined']) {
    const response = await call('PATCH', `/gpus/${gpus[0]!.id}`, { state })
    expect([response.status, response.body.code]).toEqual([409, 'conflict'])
    expect(response.body.message).toContain(vmId)
  }
  expect((await call('PATCH', `/gpus/${uuid()}`, { state: 'free' })).status).toBe(404)
})

test('the capacity report counts GPUs by location and family, and names the largest type that fits', async () => {
  const { location } = await addHost(8)
  await addVm(location, 3)
  const items = (await call('GET', '/capacity')).body.items.filter(
    (item: { location: string }) => item.location === location,
  )
  expect(items).toHaveLength(4)
  expect(items).toContainEqual({
    location,
    family: 'a100',
    total: 8,
    free: 5,
    unavailable: 0,
    claimed: 3,
    quarantined: 0,
    held: 0,
    largest_type: 'a100.4x',
  })
})

test('GPUs of a host that accepts no VMs are not counted as free', async () => {
  const { location, id } = await addHost(8)
  const counts = async () => {
    const { items } = (await call('GET', '/capacity')).body
    const item = items.find((each: { location: string; family: string }) => {
      return each.location === location && each.family === 'a100'
    })
    return [item.free, item.unavailable, item.largest_type]
  }
  expect(await counts()).toEqual([8, 0, 'a100.8x'])
  await call('PATCH', `/hosts/${id}`, { schedulable: false })
  expect(await counts()).toEqual([0, 8, ''])
  await call('PATCH', `/hosts/${id}`, { schedulable: true })
  await call('POST', `/hosts/${id}/drain`)
  expect(await counts()).toEqual([0, 8, ''])
  await call('PATCH', `/hosts/${id}`, { schedulable: true })
  expect(await counts()).toEqual([8, 0, 'a100.8x'])
  await service.database.query({ text: `UPDATE hosts SET state = 'down' WHERE id = $1`, values: [id] })
  expect(await counts()).toEqual([0, 8, ''])
})

test('an image can be imported, moved and removed', async () => {
  const created = await call('POST', '/images', {
    name: 'rocky9',
    tags: ['rocky'],
    locations: ['us-east1-a'],
    source: { file: 'rocky9.qcow2' },
  })
  expect(created.body).toMatchObject({
    name: 'rocky9:latest',
    description: '',
    tags: ['rocky'],
    locations: ['us-east1-a'],
  })
  const again = await call('POST', '/images', { name: 'rocky9:latest', locations: [] })
  expect(again.body.code).toBe('already_exists')
  const moved = await call('PATCH', `/images/${created.body.id}`, { locations: ['us-west1-a'] })
  expect(moved.body.locations).toEqual(['us-west1-a'])
  expect((await call('PATCH', `/images/${created.body.id}`, { locations: ['mars-a'] })).status).toBe(400)
  expect((await call('DELETE', `/images/${created.body.id}`)).body).toEqual({})
  expect((await call('DELETE', `/images/${created.body.id}`)).status).toBe(404)
})

test('an image that a VM uses cannot be removed', async () => {
  const { location } = await addHost()
  await addVm(location)
  const images = (await call('GET', '/images')).body.items
  const { id } = images.find(({ name }: { name: string }) => name === 'debian12:latest')
  expect((await call('DELETE', `/images/${id}`)).body.code).toBe('conflict')
})

test('new prices are valid from now on, and other prices do not change', async () => {
  const before = (await call('GET', '/prices')).body.items
  const items = [{ product_name: 'a100.8x', unit: 'vm_hour', usd: 12.345678 }]
  const after = (await call('PUT', '/prices', { items })).body.items
  expect(after).toHaveLength(before.length)
  expect(after).toContainEqual(items[0])
  expect((await call('GET', '/prices')).body.items).toEqual(after)
})

test.each([
  ['an unknown product', { product_name: 'h100.1x', unit: 'vm_hour', usd: 1 }, '/items/0/product_name'],
  ['the wrong unit', { product_name: 'persistent-ssd', unit: 'vm_hour', usd: 1 }, '/items/0/unit'],
  ['a negative price', { product_name: 'a40.1x', unit: 'vm_hour', usd: -1 }, '/items/0/usd'],
])('prices are rejected for %s', async (_, item, field) => {
  const response = await call('PUT', '/prices', { items: [item] })
  expect(response.status).toBe(400)
  expect(response.body.details[0].field).toBe(field)
})

test('operators set quotas, and current usage is kept', async () => {
  const { project_id } = service.credentials
  const items = [{ name: 'a40_gpus', max: 3 }]
  const response = await call('PUT', '/quotas', { project_id, items })
  expect(response.body.items[0]).toEqual({ name: 'a40_gpus', max: 3, used: 0, available: 3 })
  expect((await call('GET', `/quotas?project_id=${project_id}`)).body).toEqual(response.body)
  expect((await call('PUT', '/quotas', { project_id: uuid(), items })).status).toBe(404)
  expect((await call('GET', `/quotas?project_id=${uuid()}`)).status).toBe(404)
})

test('operators set organization quotas, and a project limit can be removed again', async () => {
  const { project_id, organization_id } = service.credentials
  const path = `/organizations/${organization_id}/quotas`
  const before = await call('GET', path)
  expect(before.body.items.map(({ name }: { name: string }) => name)).toEqual([...organizationQuotaNames])
  const items = [
    { name: 'a40_gpus', max: 7 },
    { name: 'members', max: 5 },
  ]
  const response = await call('PUT', path, { items })
  expect(response.body.items).toContainEqual({ name: 'a40_gpus', max: 7, used: 0, available: 7 })
  expect(response.body.items).toContainEqual({ name: 'members', max: 5, used: 1, available: 4 })
  expect((await call('GET', path)).body).toEqual(response.body)
  const own = { project_id, items: [{ name: 'a40_gpus', max: null }] }
  expect((await call('PUT', '/quotas', own)).body.items[0]).toMatchObject({ name: 'a40_gpus', max: 7 })
  for (const wrong of [
    [{ name: 'a40_gpus', max: null }],
    [{ name: 'h100_gpus', max: 1 }],
    [items[0], items[0]],
    [],
  ])
    expect((await call('PUT', path, { items: wrong })).status).toBe(400)
  expect((await call('PUT', `/organizations/${uuid()}/quotas`, { items })).status).toBe(404)
  expect((await call('GET', `/organizations/${uuid()}/quotas`)).status).toBe(404)
  const [event] = await service.sql<{ data: unknown }>(
    `SELECT data FROM events_written WHERE type = 'quotas.updated' AND resource_type = 'organization'`,
  )
  expect(event!.data).toEqual({ items })
  await call('PUT', path, { items: before.body.items.map(({ name, max }: never) => ({ name, max })) })
})

test('operators see the engine settings of locations', async () => {
  expect((await call('GET', '/locations')).body.items[0]).toEqual({
    name: 'us-east1-a',
    region: 'us-east1',
    zone: 'a',
    description: 'Simulated, US East',
    engine: 'simulated',
    storage: 'shared',
    public_ipv4: '198.18.0.0/18',
    engine_problem: '',
  })
})

test('the audit log contains every change and its actor, newest first', async () => {
  const { id } = await addHost()
  await call('PATCH', `/hosts/${id}`, { schedulable: false })
  await call('PATCH', `/hosts/${id}`, { schedulable: true })
  await service.server.reconciler.stamp()
  const { body } = await call('GET', `/events?resource_id=${id}&type=host.updated`)
  expect(body.items).toMatchObject([
    { type: 'host.updated', resource_type: 'host', resource_id: id, data: { schedulable: true } },
    { data: { schedulable: false } },
  ])
  expect(body.items[0].actor).toMatch(/^operator_key:/)
  const page = (await call('GET', `/events?resource_id=${id}&limit=1`)).body
  const next = (await call('GET', `/events?resource_id=${id}&limit=1&page_token=${page.next_page_token}`))
    .body
  expect(next.items[0].position).toBeLessThan(page.items[0].position)
})

test('the audit log contains every operator read of a tenant’s data, with its actor', async () => {
  const { project_id: project, organization_id } = service.credentials
  const reads = async () =>
    (await service.sql(`SELECT FROM events_written WHERE type = 'operator.read'`)).length
  const before = await reads()
  await call('GET', `/quotas?project_id=${project}`)
  await call('GET', '/quotas?project_id=nobody')
  await service.server.reconciler.stamp()
  const { body } = await call('GET', '/events?type=operator.read')
  expect(await reads()).toBe(before + 1)
  expect(body.items[0]).toMatchObject({
    resource_type: 'organization',
    resource_id: organization_id,
    data: { route: 'adminQuotaList' },
  })
  expect(body.items[0].actor).toMatch(/^operator_key:/)
  // The tenant's own log does not contain these operator events.
  const own = await service.ok('eventList', { query: { type: 'operator.read' } })
  expect(own.items).toEqual([])
})
