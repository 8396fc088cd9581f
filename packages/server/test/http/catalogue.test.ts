import { gpuReport, hostReport, reportHost } from '@slipway/testing/fleet.ts'
import { send } from '@slipway/testing/requests.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { simulatedHosts } from '../../src/setup/apply-config.ts'
import { setPrices } from '../../src/store/billing/prices.ts'

let service: TestService
beforeAll(async () => {
  // Without a worker, nothing reports, settles or drains automatically.
  service = await startService((config) => {
    config.server.role = 'api'
  })
  for (const location of ['us-east1-a', 'us-west1-a'])
    for (const { name, model, gpuCount } of simulatedHosts([
      { count: 2, model: 'A40 48GB PCIe', gpus: 8 },
      { count: 1, model: 'L40S 48GB PCIe', gpus: 10 },
    ])) {
      const gpus = Array.from({ length: gpuCount }, (_, i) => gpuReport(i, { model }))
      await reportHost(service.database, location, hostReport(name, gpus))
    }
})
afterAll(() => service.close())

const call = (
  method: string,
  path: string,
  body?: unknown,
  // biome-ignore lint/suspicious/noExplicitAny: responses of every kind, validated by the harness
): Promise<{ status: number; body: any }> =>
  service.request(method, `/v0.1/projects/${service.credentials.project_id}${path}`, {
    token: service.credentials.access_key,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
const items = async (path: string) => (await call('GET', path)).body.items

test('the location list shows region and zone, in the order of the configuration', async () => {
  expect(await items('/locations')).toEqual([
    { name: 'us-east1-a', region: 'us-east1', zone: 'a', description: 'Simulated, US East' },
    { name: 'us-west1-a', region: 'us-west1', zone: 'a', description: 'Simulated, US West' },
    { name: 'eu-north1-a', region: 'eu-north1', zone: 'a', description: 'Simulated, EU North' },
  ])
})

test('the spec list contains the 17 types of the specification', async () => {
  const specs = await items('/specs')
  expect(specs).toHaveLength(17)
  expect(specs.find((spec: { product_name: string }) => spec.product_name === 'a100-80gb.2x')).toEqual({
    product_name: 'a100-80gb.2x',
    description: '2 x A100 80GB PCIe, 24 cores, 240 GB memory',
    cpu_cores: 24,
    cpu_type: 'x86_64',
    memory_gb: 240,
    memory_type: 'DDR4',
    disk_gb: 1920,
    disk_type: 'NVMe',
    num_gpu: 2,
    gpu_type: 'A100 80GB PCIe',
  })
  expect(specs.at(-1)).toMatchObject({
    product_name: 'l40s-48gb.10x',
    cpu_cores: 80,
    memory_gb: 1470,
    disk_gb: 0,
    disk_type: '',
  })
})

test('every list shows types and locations in catalogue order', async () => {
  const types = (await items('/specs')).map((spec: { product_name: string }) => spec.product_name)
  const places = (await items('/locations')).map(({ name }: { name: string }) => name)
  const whole = places.flatMap((location: string) => types.map((type: string) => `${type} ${location}`))
  for (const path of ['/availabilities', '/capacities']) {
    const listed: { type: string; location: string }[] = await items(path)
    expect(
      listed.map(({ type, location }) => `${type} ${location}`),
      path,
    ).toEqual(whole)
  }
  const priced = (await items('/prices')).map((price: { product_name: string }) => price.product_name)
  expect(priced).toEqual([...types, 'persistent-ssd', 'shared-volume', 'custom-image', 'snapshot'])
})

test('the image list shows where each image can be used', async () => {
  const images = await items('/images')
  expect(images.map(({ name }: { name: string }) => name)).toEqual([
    'debian12:latest',
    'ubuntu22.04-nvidia:latest',
    'ubuntu24.04-nvidia:latest',
    'ubuntu24.04:latest',
  ])
  expect(images[2]).toMatchObject({
    tags: ['ubuntu', 'nvidia', 'cuda', 'cloud-init', 'slipway-guest'],
    locations: ['us-east1-a', 'us-west1-a', 'eu-north1-a'],
  })
})

test('the price list shows disks per GB and hour, and types by their number of GPUs', async () => {
  const prices = await items('/prices')
  expect(prices).toContainEqual({ product_name: 'shared-volume', unit: 'gb_hour', usd: 0.00013 })
  expect(prices).toContainEqual({ product_name: 'a100.4x', unit: 'vm_hour', usd: 5.8 })
})

test('the quota list covers the fleet and counts the default firewall rules', async () => {
  const quotas = await items('/quotas')
  expect(quotas[0]).toEqual({ name: 'a40_gpus', max: 96, used: 0, available: 96 })
  expect(quotas.at(-1).name).toBe('firewall_rules')
  expect(quotas.at(-1).used).toBeGreaterThan(0)
})

test('availability covers every type in every location', async () => {
  const all = await items('/availabilities')
  expect(all).toHaveLength(17 * 3)
  expect(all).toContainEqual({ type: 'a40.8x', location: 'us-east1-a', available: true })
  expect(all).toContainEqual({ type: 'a100.1x', location: 'us-east1-a', available: false })
  expect(all).toContainEqual({ type: 'l40s-48gb.10x', location: 'us-west1-a', available: true })
  expect(all).toContainEqual({ type: 'a40.1x', location: 'eu-north1-a', available: false })
})

test('availability can be filtered by type and location, and an unknown value gives no items', async () => {
  expect(await items('/availabilities?product_name=a40.2x&location=us-west1-a')).toEqual([
    { type: 'a40.2x', location: 'us-west1-a', available: true },
  ])
  expect(await items('/availabilities?product_name=h100.1x')).toEqual([])
  expect(await items('/capacities?location=mars-a')).toEqual([])
  expect((await call('GET', '/availabilities?colour=red')).status).toBe(400)
})

test('availability agrees with capacity, which counts whole VMs on each host', async () => {
  const capacities = await items('/capacities?location=us-east1-a')
  const quantity = Object.fromEntries(
    capacities.map((item: { type: string; quantity: number }) => [item.type, item.quantity]),
  )
  expect(quantity).toMatchObject({ 'a40.1x': 16, 'a40.4x': 4, 'a40.8x': 2, 'a100.1x': 0 })
  expect(quantity).toMatchObject({ 'l40s-48gb.4x': 2, 'l40s-48gb.8x': 1, 'l40s-48gb.10x': 1 })
})

interface Row {
  type: string
  location: string
  usd_per_hour: number | null
}
const namesOf = (rows: Row[]) => rows.map(({ type, location }) => `${type} ${location}`)

test('an offer shows everything needed to choose a type in a location', async () => {
  const offers = await items('/offers')
  expect(offers).toHaveLength(17 * 3)
  expect(offers).toContainEqual({
    type: 'a40.2x',
    location: 'us-west1-a',
    gpu_model: 'A40 48GB PCIe',
    gpu_count: 2,
    gpu_memory_gb: 48,
    cpu_cores: 12,
    memory_gb: 120,
    scratch_gb: 1920,
    network_gbps: 50,
    usd_per_hour: 1.8,
    quantity: 8,
    quota_left: 48,
  })
})

test('offers are sorted by price, those without a price last, and otherwise in catalogue order', async () => {
  await service.sql(`DELETE FROM prices WHERE product_name = 'a40.1x'`)
  const offers: Row[] = await items('/offers')
  const prices = offers.map((offer) => offer.usd_per_hour ?? Number.MAX_VALUE)
  expect(prices).toEqual(prices.toSorted((a, b) => a - b))
  expect(namesOf(offers).slice(0, 3)).toEqual([
    'l40s-48gb.1x us-east1-a',
    'l40s-48gb.1x us-west1-a',
    'l40s-48gb.1x eu-north1-a',
  ])
  expect(namesOf(offers).slice(-3)).toEqual(['a40.1x us-east1-a', 'a40.1x us-west1-a', 'a40.1x eu-north1-a'])
  expect(namesOf(await items('/offers?max_usd_per_hour=1&locations=us-west1-a'))).toEqual([
    'l40s-48gb.1x us-west1-a',
  ])
  await service.database.transaction((tx) =>
    setPrices(tx, [{ product_name: 'a40.1x', unit: 'vm_hour', usd: '0.9' }]),
  )
})

test.each([
  [
    'gpu_model=a100-80gb&locations=us-east1-a',
    ['a100-80gb.1x', 'a100-80gb.2x', 'a100-80gb.4x', 'a100-80gb.8x'],
  ],
  ['gpu_model=A100&locations=us-east1-a&min_gpu_count=8', ['a100.8x', 'a100-80gb.8x']],
  [
    'gpu_model=l40s%2048GB%20pcie&min_gpu_count=8&available=true',
    ['l40s-48gb.8x', 'l40s-48gb.8x', 'l40s-48gb.10x', 'l40s-48gb.10x'],
  ],
  [
    'min_gpu_memory_gb=80&max_usd_per_hour=1.65&locations=us-east1-a,eu-north1-a',
    ['a100-80gb.1x', 'a100-80gb.1x'],
  ],
  ['locations=eu-north1-a&available=true', []],
  ['available=false&locations=eu-north1-a&max_usd_per_hour=0.9', ['a40.1x']],
])('offers and the catalogue can be filtered by %s', async (filter, types) => {
  const typesOf = (rows: Row[]) => rows.map(({ type }) => type)
  expect(typesOf(await items(`/offers?${filter}`))).toEqual(types)
  const { body } = await service.request('GET', `/v0.1/catalogue?${filter}`, { token: null })
  expect(typesOf((body as { items: Row[] }).items)).toEqual(types)
})

test('an available offer is in stock and within the quotas', async () => {
  const { project_id } = service.credentials
  const setMax = (max: number | null) =>
    service.sql(`UPDATE quotas SET max = $1 WHERE project_id = $2 AND name = 'a40_gpus'`, [max, project_id])
  await setMax(3)
  const offers = await items('/offers?gpu_model=a40&locations=us-east1-a')
  expect(offers.map((offer: { quota_left: number }) => offer.quota_left)).toEqual([3, 1, 0, 0])
  expect(namesOf(await items('/offers?gpu_model=a40&locations=us-east1-a&available=true'))).toEqual([
    'a40.1x us-east1-a',
    'a40.2x us-east1-a',
  ])
  await setMax(null)
})

test.each([
  ['gpu_model=a10', 'gpu_model', 'A100 40GB PCIe'],
  ['locations=us-east1', 'locations', 'us-east1-a'],
  ['min_gpu_count=some', 'min_gpu_count', ''],
  ['colour=red', 'colour', ''],
])('the filter %s is rejected', async (filter, field, suggestion) => {
  for (const path of [`/v0.1/projects/${service.credentials.project_id}/offers`, '/v0.1/catalogue']) {
    const { status, body } = await service.request('GET', `${path}?${filter}`)
    expect([status, body]).toMatchObject([400, { details: [{ field }] }])
    expect((body as { message: string }).message).toContain(suggestion)
  }
})

test('the public catalogue shows whether there is stock, but not how much', async () => {
  const { status, body } = await service.request('GET', '/v0.1/catalogue', { token: null })
  expect(status).toBe(200)
  const rows = (body as { items: object[] }).items
  expect(rows).toHaveLength(17 * 3)
  expect(rows).toContainEqual({
    type: 'a40.8x',
    location: 'us-east1-a',
    gpu_model: 'A40 48GB PCIe',
    gpu_count: 8,
    gpu_memory_gb: 48,
    cpu_cores: 48,
    memory_gb: 480,
    scratch_gb: 7680,
    network_gbps: 200,
    usd_per_hour: 7.2,
    available: true,
  })
})

test('an operator can close the catalogue to callers without a credential', async () => {
  const closed = await service.another((config) => {
    config.server.role = 'api'
    config.server.publicCatalogue = false
  })
  expect((await send(closed, 'GET', '/catalogue')).status).toBe(401)
  const { access_key } = service.credentials
  expect((await send(closed, 'GET', '/catalogue', { token: access_key })).status).toBe(200)
})

const vm = {
  name: 'train-7',
  type: 'a40.4x',
  location: 'us-east1-a',
  image: 'ubuntu24.04-nvidia',
  ssh_public_key: sshKey,
}
const disk = { name: 'data', size: '2TiB', location: 'us-east1-a' }

test('a cost estimate of a VM shows the price for one hour and for 730 hours', async () => {
  expect((await call('POST', '/estimates', { vm })).body).toEqual({
    items: [{ product_name: 'a40.4x', quantity: 1, unit: 'vm_hour', usd_per_hour: 3.6 }],
    usd_per_hour: 3.6,
    usd_per_month: 2628,
  })
})

test('a cost estimate of a disk is exact to the last decimal', async () => {
  expect((await call('POST', '/estimates', { disk })).body).toEqual({
    items: [{ product_name: 'persistent-ssd', quantity: 2048, unit: 'gb_hour', usd_per_hour: 0.26624 }],
    usd_per_hour: 0.26624,
    usd_per_month: 194.3552,
  })
})

test('a cost estimate is null where no price is set', async () => {
  await service.database.query({ text: `DELETE FROM prices WHERE product_name = 'a40.4x'` })
  const { body } = await call('POST', '/estimates', { vm })
  expect(body).toMatchObject({ usd_per_hour: null, usd_per_month: null })
  expect(body.items[0].usd_per_hour).toBeNull()
  await service.database.transaction((tx) =>
    setPrices(tx, [{ product_name: 'a40.4x', unit: 'vm_hour', usd: '3.6' }]),
  )
})

test('a cost estimate reserves nothing and leaves no trace', async () => {
  const state = async () => ({
    capacity: await items('/capacities'),
    quotas: await items('/quotas'),
    rows: await service.sql(
      'SELECT (SELECT count(*) FROM vms) v, (SELECT count(*) FROM disks) d, (SELECT count(*) FROM operations) o, (SELECT count(*) FROM events_written) e',
    ),
  })
  const before = await state()
  for (const body of [{ vm }, { disk }]) expect((await call('POST', '/estimates', body)).status).toBe(200)
  expect(await state()).toEqual(before)
})

test('a cost estimate is refused with the same error as the creation', async () => {
  const [taken, takenDisk] = [vmBody({ type: 'a40.1x' }), { ...disk, name: 'taken' }]
  await service.ok('vmCreate', { body: taken })
  await service.ok('diskCreate', { body: takenDisk })
  await service.sql(`UPDATE quotas SET max = 8 WHERE project_id = $1 AND name = 'l40s-48gb_gpus'`, [
    service.credentials.project_id,
  ])
  const refusals: [string, object, number][] = [
    ['vm', taken, 409],
    ['vm', { ...vm, type: 'a100.1x' }, 409],
    ['vm', { ...vm, type: 'l40s-48gb.10x' }, 403],
    ['vm', { ...vm, name: 'train 7' }, 400],
    ['vm', { ...vm, ssh_public_key: 'ssh-rsa AAAA' }, 400],
    ['vm', { ...vm, startup_script: 'x'.repeat(65_537) }, 400],
    ['vm', { ...vm, shutdown_script: '#cloud-config\n' }, 400],
    ['vm', { ...vm, disks: [{ disk_id: service.credentials.project_id }] }, 404],
    ['disk', takenDisk, 409],
    ['disk', { ...disk, size: '11TiB' }, 400],
    ['disk', { ...disk, type: 'shared-volume', size: '900TiB' }, 403],
  ]
  for (const [member, body, status] of refusals) {
    const estimate = await call('POST', '/estimates', { [member]: body })
    const creation = await call('POST', `/${member}s`, body)
    const { request_id: _one, details: estimated, ...error } = estimate.body
    const { request_id: _other, details: created, ...expected } = creation.body
    const what = JSON.stringify(body).slice(0, 300)
    expect([estimate.status, creation.status], what).toEqual([status, status])
    if (status !== 400) expect(error, what).toEqual(expected)
    expect(estimated?.[0], what).toEqual(created && { ...created[0], field: `/${member}${created[0].field}` })
  }
})

test.each([
  ['nothing to estimate', {}, ''],
  ['a VM and a disk together', { vm, disk }, ''],
  ['an unknown type', { vm: { ...vm, type: 'a40.3x' } }, '/vm/type'],
  ['an unknown location', { vm: { ...vm, location: 'mars-a' } }, '/vm/location'],
  ['an unknown image', { vm: { ...vm, image: 'plan9' } }, '/vm/image'],
  ['a shared volume in GiB', { disk: { ...disk, type: 'shared-volume', size: '5GiB' } }, '/disk/size'],
  ['a disk that is too large', { disk: { ...disk, size: '11TiB' } }, '/disk/size'],
  ['a disk in an unknown location', { disk: { ...disk, location: 'mars-a' } }, '/disk/location'],
])('a cost estimate is refused for %s', async (_, body, field) => {
  const response = await call('POST', '/estimates', body)
  expect(response.status).toBe(400)
  expect(response.body.code).toBe('invalid_argument')
  expect(response.body.details?.[0].field ?? '').toBe(field)
})
