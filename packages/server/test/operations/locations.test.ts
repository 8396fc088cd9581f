import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { type TestService, useService } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'
import type { GpuModel } from '../../src/config/sections.ts'

test('a worker without the engine of a location leaves its operations to a worker that has it', async () => {
  const service = await useService((config) => {
    config.server.role = 'api'
  })
  await settle(service)
  const resources = resourcesOf(service)
  const lagging = await service.another((config) => {
    config.server.role = 'worker'
    config.locations = config.locations.filter(({ name }) => name !== 'us-west1-a')
  })
  expect([...lagging.services.engines.keys()]).not.toContain('us-west1-a')

  const far = await resources.createVm({ location: 'us-west1-a' })
  const doomed = await resources.createVm({ location: 'us-west1-a' })
  const deletion = await resources.removeVm(doomed.operation.metadata.id)
  // The worker runs newer operations that it can run, although older ones wait for another worker.
  await resources.newVm()
  const rule = await resources.createRule()
  const untouched = await service.sql(
    `SELECT attempts, lease_token, state FROM operations JOIN operation_queue ON operation_id = id WHERE id = ANY ($1)`,
    [[far.operation.operation_id, deletion.operation.operation_id]],
  )
  const waiting = { attempts: 0, lease_token: null, state: 'IN_PROGRESS' }
  expect(untouched).toEqual([waiting, waiting])

  await service.another((config) => {
    config.server.role = 'worker'
  })
  await resources.succeeded(far)
  await resources.succeeded(deletion)
  await resources.succeeded(rule)
  await settle(service)
  await checkInvariants(service)
})

test('an operation claimed by a worker without its engine waits, and a deletion never fails', async () => {
  const service = await useService()
  const resources = resourcesOf(service)
  const id = await resources.newVm()
  const { engines } = service.server.services
  const engine = engines.get('us-east1-a')!
  const engineMap = engines as Map<string, typeof engine>
  engineMap.delete('us-east1-a')
  const creation = await resources.createVm()
  const deletion = await resources.removeVm(id)
  // Without a location, every worker claims the operation.
  await service.sql(`UPDATE operation_queue SET location = ''`)
  const tried = [creation.operation.operation_id, deletion.operation.operation_id]
  await eventually(async () => {
    const rows = await service.sql(`SELECT FROM operations WHERE attempts > 0 AND id = ANY ($1)`, [tried])
    return rows.length === 2
  })
  engineMap.set('us-east1-a', engine)
  await resources.succeeded(creation)
  await resources.succeeded(deletion)
  await checkInvariants(service)
})

const anywhere = { location: 'any' }
const close = (service: TestService, location: string) =>
  service.sql(`UPDATE hosts SET is_schedulable = false WHERE location = $1`, [location])

test('a VM with location “any” gets the first location in catalogue order that has stock', async () => {
  const service = await useService()
  await settle(service)
  const resources = resourcesOf(service)
  const locationOf = async (body: object = {}) => {
    const accepted = await resources.createVm({ ...anywhere, ...body })
    expect(accepted.operation.metadata.request).toMatchObject(anywhere)
    const id = await resources.succeeded(accepted)
    return (await service.ok('vmGet', { params: { vm_id: id } })).location
  }
  expect(await locationOf()).toBe('us-east1-a')

  const disk_id = await resources.newDisk({ location: 'eu-north1-a' })
  expect(await locationOf({ disks: [{ disk_id, mode: 'read-write' }] })).toBe('eu-north1-a')

  const subnets = (await service.ok('subnetList')).items
  const west = subnets.find(({ location }) => location === 'us-west1-a')!
  expect(await locationOf({ subnet_id: west.id })).toBe('us-west1-a')

  const token = service.credentials.operator_key
  const image = (await service.ok('adminImageList', { token })).items.find(
    ({ name }) => name === 'debian12:latest',
  )!
  const body = { locations: ['us-west1-a', 'eu-north1-a'] }
  await service.ok('adminImageUpdate', { token, params: { image_id: image.id }, body })
  expect(await locationOf({ image: 'debian12' })).toBe('us-west1-a')

  await close(service, 'us-east1-a')
  expect(await locationOf()).toBe('us-west1-a')
  await close(service, 'us-west1-a')
  await close(service, 'eu-north1-a')
  const refused = await service.call('vmCreate', { body: vmBody(anywhere) })
  expect([refused.status, refused.body]).toMatchObject([
    409,
    { code: 'out_of_stock', message: expect.stringContaining('out of stock in every location') },
  ])
  const unknown = await service.call('vmCreate', { body: vmBody({ ...anywhere, image: 'plan9' }) })
  expect(unknown.status).toBe(400)
  await checkInvariants(service)
})

test('concurrent creations with location “any” fill one location after another, and none is refused', async () => {
  const service = await useService()
  await settle(service)
  const [{ hosts }] = (await service.sql<{ hosts: number }>(
    `SELECT count(*)::int AS hosts FROM hosts WHERE location = 'us-east1-a' AND family = 'a100'`,
  )) as [{ hosts: number }]
  const accepted = await Promise.all(
    Array.from({ length: hosts + 2 }, () => resourcesOf(service).createVm({ ...anywhere, type: 'a100.8x' })),
  )
  for (const { operation } of accepted)
    expect(await service.ended(operation.operation_id)).toMatchObject({ state: 'SUCCEEDED' })
  const { items } = await service.ok('vmList')
  const countIn = (location: string) => items.filter((vm) => vm.location === location).length
  expect([countIn('us-east1-a'), countIn('us-west1-a')]).toEqual([hosts, 2])
  await settle(service)
  await checkInvariants(service)
})

test('the out_of_stock message says whether the location has such GPUs at all, and where they are', async () => {
  const fleet: Record<string, { model: GpuModel; gpus: number }> = {
    'us-east1-a': { model: 'A40 48GB PCIe', gpus: 4 },
    'us-west1-a': { model: 'A40 48GB PCIe', gpus: 4 },
    'eu-north1-a': { model: 'A100 40GB PCIe', gpus: 1 },
  }
  const service = await useService((config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated') location.simulated.hosts = [{ count: 1, ...fleet[location.name]! }]
  })
  await settle(service)
  const refusal = async (type: string) => {
    const { status, body } = await service.call('vmCreate', {
      body: vmBody({ type, location: 'us-east1-a' }),
    })
    expect([status, body]).toMatchObject([409, { code: 'out_of_stock' }])
    return body as unknown as { message: string; available_locations: string[] }
  }
  expect(await refusal('a100.1x')).toMatchObject({
    message:
      'a100.1x is out of stock in us-east1-a, which has no host with an A100 40GB PCIe GPU. It would fit in eu-north1-a.',
    available_locations: ['eu-north1-a'],
  })
  expect((await refusal('a40.8x')).message).toBe(
    'a40.8x is out of stock in us-east1-a, which has no host with 8 A40 48GB PCIe GPUs. No location has a host in service that can run this type. Choose another type.',
  )
  const resources = resourcesOf(service)
  await resources.newVm({ type: 'a100.1x', location: 'eu-north1-a' })
  expect(await refusal('a100.1x')).toMatchObject({
    message: expect.stringMatching(/no host with an A100 40GB PCIe GPU\. Try again later in eu-north1-a\.$/),
    available_locations: [],
  })
  await resources.newVm({ type: 'a40.4x' })
  expect((await refusal('a40.1x')).message).toBe(
    'a40.1x is out of stock in us-east1-a. It would fit in us-west1-a.',
  )
  await resources.newVm({ type: 'a40.4x', location: 'us-west1-a' })
  expect((await refusal('a40.1x')).message).toBe(
    'a40.1x is out of stock in us-east1-a. Try again later in us-east1-a or us-west1-a.',
  )
})
