import { createDatabase } from '@slipway/testing/database.ts'
import { defaultConfig, hostReport, reportHost, rows } from '@slipway/testing/fleet.ts'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { setUpProject } from '../../src/accounts/project-setup.ts'
import { uuid } from '../../src/domain/ids.ts'
import { Database } from '../../src/postgres/database.ts'
import { applyConfig } from '../../src/setup/apply-config.ts'
import { listPrices, setPrices } from '../../src/store/billing/prices.ts'
import { listImages, removeImage, setImageLocations } from '../../src/store/fleet/images.ts'
import { listLocations } from '../../src/store/fleet/locations.ts'
import { insertOrganization } from '../../src/store/identity/organizations.ts'

let store: Awaited<ReturnType<typeof createDatabase>> | undefined
let database: Database
async function close() {
  await database?.close()
  await store?.drop()
}
beforeEach(async () => {
  await close()
  store = await createDatabase()
  database = new Database({ url: store.url, poolSize: 8 })
})
afterAll(close)

const config = defaultConfig()
const priceOf = async (name: string) =>
  (await listPrices(database)).find((price) => price.product_name === name)?.usd

async function addProject() {
  const organizationId = uuid()
  return database.transaction(async (tx) => {
    await insertOrganization(tx, organizationId, 'Harbour Labs')
    return setUpProject(tx, { organizationId, name: 'default' })
  })
}

test('the catalogue of the configuration is created once, even if five processes start at the same time', async () => {
  await Promise.all([1, 2, 3, 4, 5].map(() => applyConfig(database, config)))
  expect((await listLocations(database)).map(({ name, region, zone }) => [name, region, zone])).toEqual([
    ['us-east1-a', 'us-east1', 'a'],
    ['us-west1-a', 'us-west1', 'a'],
    ['eu-north1-a', 'eu-north1', 'a'],
  ])
  const [image] = await listImages(database)
  expect(image?.locations).toEqual(['us-east1-a', 'us-west1-a', 'eu-north1-a'])
  expect(await rows(database, 'SELECT count(*) AS hosts FROM simulated_hosts')).toEqual([{ hosts: 45 }])
  const history = await rows(database, 'SELECT FROM prices')
  expect(history).toHaveLength(21)
  expect(await priceOf('a40.1x')).toBe('0.9')
  expect(await priceOf('a100.8x')).toBe('11.6')
  expect(await priceOf('l40s-48gb.10x')).toBe('10')
  expect(await priceOf('persistent-ssd')).toBe('0.00013')
})

test('the configuration does not override changes by operators', async () => {
  await applyConfig(database, config)
  const [debian, ubuntu] = await listImages(database)
  await database.transaction(async (tx) => {
    await removeImage(tx, debian!.id)
    await setImageLocations(tx, ubuntu!.id, ['us-east1-a'])
    await setPrices(tx, [{ product_name: 'a40.1x', unit: 'vm_hour', usd: '0.75' }])
  })
  await applyConfig(database, config)
  const images = await listImages(database)
  expect(images.map(({ id }) => id)).not.toContain(debian!.id)
  expect(images.find(({ id }) => id === ubuntu!.id)?.locations).toEqual(['us-east1-a'])
  expect(await priceOf('a40.1x')).toBe('0.75')
})

test('a price in the configuration overrides one that an operator set', async () => {
  const prices = [{ model: 'A40 48GB PCIe' as const, usdPerGpuHour: '0.123' }]
  await applyConfig(database, { ...config, prices })
  await database.transaction((tx) => setPrices(tx, [{ product_name: 'a40.2x', unit: 'vm_hour', usd: '9' }]))
  await applyConfig(database, { ...config, prices })
  expect(await priceOf('a40.2x')).toBe('0.246')
  expect(await priceOf('a100.1x')).toBeUndefined()
})

test('the default networks of existing projects get a subnet in a new location', async () => {
  const [first, second, third] = config.locations
  await applyConfig(database, { ...config, locations: [first!, second!] })
  const project = await addProject()
  await applyConfig(database, { ...config, locations: [third!, first!, second!] })
  const subnets = await rows<{ location: string; cidr: string }>(
    database,
    'SELECT location, cidr::text FROM subnets WHERE project_id = $1 ORDER BY cidr',
    project.id,
  )
  expect(subnets).toEqual([
    { location: first!.name, cidr: '172.27.0.0/20' },
    { location: second!.name, cidr: '172.27.16.0/20' },
    { location: third!.name, cidr: '172.27.32.0/20' },
  ])
  const [image] = await listImages(database)
  expect(image?.locations).toContain(third!.name)
})

test('a location that is no longer in the file is removed, unless it contains resources', async () => {
  await applyConfig(database, config)
  await reportHost(database, 'us-west1-a', hostReport('h', 1))
  const only = { ...config.locations[0]!, description: 'The only one' }
  await applyConfig(database, { ...config, locations: [only] })
  expect((await listLocations(database)).map(({ name }) => name).sort()).toEqual(['us-east1-a', 'us-west1-a'])
})

test('the engine of the first start is kept if the file has no locations', async () => {
  await applyConfig(database, config)
  const locations = await applyConfig(database, defaultConfig('--engine', 'qemu'))
  expect(locations.map(({ engine }) => engine)).toEqual(['simulated', 'simulated', 'simulated'])
})

test('changing the engine of a location with disks is refused', async () => {
  await applyConfig(database, config)
  const project = await addProject()
  await database.query({
    text: `INSERT INTO disks (id, project_id, name, type, size, size_gib, location, block_size, serial_number, state)
           VALUES ($1, $2, 'd', 'persistent-ssd', '1GiB', 1, 'us-east1-a', 512, 's', 'available')`,
    values: [uuid(), project.id],
  })
  const [qemu] = defaultConfig('--engine', 'qemu').locations
  const locations = [{ ...qemu!, name: 'us-east1-a' }]
  await expect(applyConfig(database, { ...config, locations })).rejects.toThrow(
    /engine: qemu: cannot change the engine of us-east1-a/,
  )
})
