import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { SimulatedEngine } from '../../src/engines/simulated/engine.ts'

let service: TestService
beforeAll(async () => {
  service = await startService((config) => {
    config.locations.find(({ name }) => name === 'us-west1-a')!.storage = 'local'
  })
})
afterEach(() => engine().clearFaults())
afterAll(() => service.close())

const location = 'us-east1-a'
let count = 0
const fresh = (prefix: string) => `${prefix}-${++count}`

type OperationResponse = { operation: { operation_id: string; metadata: { id: string } } }
const awaitEnd = async ({ operation }: OperationResponse) => {
  const ended = await service.ended(operation.operation_id)
  expect(ended).toMatchObject({ state: 'SUCCEEDED' })
  return operation.metadata.id
}
const newVm = async (body: object = {}) =>
  awaitEnd(await service.ok('vmCreate', { body: vmBody({ location, ...body }) }))
const stop = async (vm_id: string) =>
  awaitEnd(await service.ok('vmUpdate', { params: { vm_id }, body: { action: 'STOP' } }))
const newImage = async (body: object) =>
  awaitEnd(await service.ok('customImageCreate', { body: { name: fresh('image'), ...body } as never }))
/** Returns the body of a request for a VM from a custom image. */
function fromImage(custom_image: string, more: object = {}) {
  const { image: _, ...body } = vmBody({ location, ...more })
  return { ...body, custom_image }
}
const engine = () => service.server.services.engines.get(location) as SimulatedEngine

test('an image of a stopped VM outlives the VM, and VMs outlive the image', async () => {
  const vm_id = await newVm({ os_disk_size: '256GiB' })
  await stop(vm_id)
  const accepted = await service.ok('customImageCreate', {
    body: { name: 'trainer', vm_id, tags: ['cuda', 'cloud-init'], labels: { team: 'ml' } },
  })
  const ended = await service.ended(accepted.operation.operation_id)
  const custom_image_id = accepted.operation.metadata.id
  const image = await service.ok('customImageGet', { params: { custom_image_id } })
  expect(ended).toMatchObject({ state: 'SUCCEEDED', metadata: { type: 'custom_image' }, result: image })
  expect(image).toEqual({
    ...{ id: custom_image_id, name: 'trainer:latest', description: '', tags: ['cuda', 'cloud-init'] },
    ...{ created_at: expect.any(String), locations: [location], state: 'available', size: '256GiB' },
    ...{ stored_bytes: 32 * 1024 ** 3, source_id: vm_id, consistency: 'off' },
    ...{ labels: { team: 'ml' }, deletion_protection: false },
  })
  const metered = () =>
    service.sql(
      'SELECT product_name, quantity::int FROM usage_intervals WHERE resource_id = $1 AND upper_inf(period)',
      [custom_image_id],
    )
  expect(await metered()).toEqual([{ product_name: 'custom-image', quantity: 32 }])
  await awaitEnd(await service.ok('vmDelete', { params: { vm_id } }))

  const newVmId = await awaitEnd(
    await service.ok('vmCreate', { body: fromImage('trainer', { startup_script: '#cloud-config\n{}\n' }) }),
  )
  const vm = await service.ok('vmGet', { params: { vm_id: newVmId } })
  expect(vm).toMatchObject({ image: 'trainer:latest', custom_image_id, state: 'STATE_RUNNING' })
  expect(vm.disks[0]).toMatchObject({ attachment_type: 'os', size: '256GiB' })
  await awaitEnd(await service.ok('customImageDelete', { params: { custom_image_id } }))
  expect(await metered()).toEqual([])
  await stop(newVmId)
  await awaitEnd(await service.ok('vmUpdate', { params: { vm_id: newVmId }, body: { action: 'START' } }))
  expect(await service.ok('vmGet', { params: { vm_id: newVmId } })).toMatchObject({ custom_image_id })
  expect(await service.call('vmCreate', { body: fromImage('trainer') })).toMatchObject({
    status: 400,
    body: { details: [{ field: '/custom_image' }] },
  })
  await awaitEnd(await service.ok('vmDelete', { params: { vm_id: newVmId } }))
  await settle(service)
  await checkInvariants(service)
})

test('an image name without a version means the newest image that is available', async () => {
  const vm_id = await newVm()
  await stop(vm_id)
  const first = await newImage({ name: 'base:v1', vm_id })
  const second = await newImage({ name: 'base:v2', vm_id })
  await newImage({ name: 'base2:v9', vm_id })
  const imageOf = async (ref: string) => {
    const newVmId = await awaitEnd(await service.ok('vmCreate', { body: fromImage(ref) }))
    const { custom_image_id } = await service.ok('vmGet', { params: { vm_id: newVmId } })
    await awaitEnd(await service.ok('vmDelete', { params: { vm_id: newVmId } }))
    return custom_image_id
  }
  expect(await imageOf('base')).toBe(second)
  expect(await imageOf('base:v1')).toBe(first)
  expect(await imageOf(first)).toBe(first)
  const { items } = await service.ok('customImageList', { query: { name_prefix: 'base:' } })
  expect(items.map(({ name }) => name)).toEqual(['base:v2', 'base:v1'])
  const taken = await service.call('customImageCreate', { body: { name: 'base:v1', vm_id } })
  expect(taken).toMatchObject({ status: 409, body: { code: 'already_exists' } })
  await awaitEnd(await service.ok('vmDelete', { params: { vm_id } }))
})

test('a running VM without an agent is copied only if the request allows it', async () => {
  const vm_id = await newVm()
  const accepted = await service.ok('customImageCreate', { body: { name: fresh('image'), vm_id } })
  expect(await service.ended(accepted.operation.operation_id)).toMatchObject({
    state: 'FAILED',
    result: { code: 'conflict', message: expect.stringContaining('allow_crash_consistent') },
  })
  const consistencyOf = async (custom_image_id: string) =>
    (await service.ok('customImageGet', { params: { custom_image_id } })).consistency
  expect(await consistencyOf(await newImage({ vm_id, allow_crash_consistent: true }))).toBe('crash')
  await engine().setGuestAgent(true)
  expect(await consistencyOf(await newImage({ vm_id }))).toBe('frozen')
  await engine().setGuestAgent(false)
  await awaitEnd(await service.ok('vmDelete', { params: { vm_id } }))
})

test('an image can be created from a snapshot, and templates and groups can use it', async () => {
  const disk = await service.ok('diskCreate', { body: { name: fresh('disk'), size: '20GiB', location } })
  const disk_id = await awaitEnd(disk)
  const snapshot_id = await awaitEnd(
    await service.ok('snapshotCreate', { body: { name: fresh('snapshot'), disk_id } }),
  )
  const custom_image_id = await newImage({ name: 'from-snapshot', snapshot_id })
  await awaitEnd(await service.ok('snapshotDelete', { params: { snapshot_id } }))
  const { name: _, ...members } = fromImage('from-snapshot', { type: 'a40.1x', location: 'any' })
  const template = await service.ok('instanceTemplateCreate', {
    body: { name: fresh('template'), ...members },
  })
  const newVmId = await awaitEnd(
    await service.ok('vmCreate', { body: { name: fresh('vm'), instance_template_id: template.id } }),
  )
  expect(await service.ok('vmGet', { params: { vm_id: newVmId } })).toMatchObject({
    custom_image_id,
    location,
  })
  const other = await service.ok('vmCreate', {
    body: { name: fresh('vm'), instance_template_id: template.id, image: 'debian12' },
  })
  const plain = await service.ok('vmGet', { params: { vm_id: await awaitEnd(other) } })
  expect(plain).toMatchObject({ custom_image_id: '', image: 'debian12' })
  const group = await service.ok('instanceGroupCreate', {
    body: { name: fresh('group'), desired_count: 2, template_id: template.id },
  })
  const instance_group_id = await awaitEnd(group)
  const { instances } = await service.ok('instanceGroupGet', { params: { instance_group_id } })
  const { items } = await service.ok('vmList', { query: { ids: instances.join(',') } })
  expect(items.map((vm) => vm.custom_image_id)).toEqual([custom_image_id, custom_image_id])
  await awaitEnd(await service.ok('instanceGroupDelete', { params: { instance_group_id } }))
  for (const vm_id of [newVmId, plain.id]) await awaitEnd(await service.ok('vmDelete', { params: { vm_id } }))
})

test('invalid requests for custom images are refused with the reason', async () => {
  const vm_id = await newVm()
  await stop(vm_id)
  const custom_image_id = await newImage({ name: 'refused', vm_id })
  const create = (body: object) =>
    service.call('customImageCreate', { body: { name: fresh('image'), ...body } as never })
  expect(await create({})).toMatchObject({ status: 400 })
  expect(await create({ vm_id, disk_id: vm_id })).toMatchObject({ status: 400 })
  expect(await create({ vm_id: custom_image_id })).toMatchObject({ status: 404 })
  const vm = (body: object) => service.call('vmCreate', { body: body as never })
  for (const [body, field] of [
    [{ ...fromImage('refused'), image: 'debian12' }, '/custom_image'],
    [fromImage('nothing'), '/custom_image'],
    [fromImage('refused', { location: 'eu-north1-a' }), '/custom_image'],
    [fromImage('refused', { startup_script: '#cloud-config\n{}\n' }), '/startup_script'],
  ] as const)
    expect(await vm(body)).toMatchObject({ status: 400, body: { details: [{ field }] } })
  await awaitEnd(await service.ok('vmDelete', { params: { vm_id } }))
})

test('an image from which a VM is being created is not deleted; VMs that exist do not matter', async () => {
  const vm_id = await newVm()
  await stop(vm_id)
  const custom_image_id = await newImage({ name: 'busy', vm_id })
  await engine().addFault({ method: 'ensureVm', kind: 'fail', times: 1000 })
  const accepted = await service.ok('vmCreate', { body: fromImage('busy') })
  const params = { custom_image_id }
  expect(await service.call('customImageDelete', { params })).toMatchObject({
    status: 409,
    body: { code: 'conflict' },
  })
  await engine().clearFaults()
  const newVmId = await awaitEnd(accepted)
  await awaitEnd(await service.ok('customImageDelete', { params }))
  for (const id of [newVmId, vm_id]) await awaitEnd(await service.ok('vmDelete', { params: { vm_id: id } }))
})

test('an image whose VM is deleted during the copy fails and leaves nothing', async () => {
  const vm_id = await newVm()
  await engine().addFault({ method: 'capture', kind: 'fail', times: 1000 })
  const accepted = await service.ok('customImageCreate', {
    body: { name: 'gone', vm_id, allow_crash_consistent: true },
  })
  // The deletion of a VM never waits for a copy; the copy then fails and leaves nothing.
  await awaitEnd(await service.ok('vmDelete', { params: { vm_id } }))
  await engine().clearFaults()
  const failed = await service.ended(accepted.operation.operation_id)
  expect(failed).toMatchObject({ state: 'FAILED' })
  expect((await service.ok('customImageList', { query: { names: 'gone:latest' } })).items).toEqual([])
  await settle(service)
  await checkInvariants(service)
})

test('where storage is local, VMs are created on the host of the image, which is lost with that host', async () => {
  const here = { location: 'us-west1-a' }
  const vm_id = await newVm(here)
  await stop(vm_id)
  const custom_image_id = await newImage({ name: 'local', vm_id })
  const newVmId = await awaitEnd(await service.ok('vmCreate', { body: fromImage('local', here) }))
  const hosts = await service.sql<{ id: string; name: string }>(
    `SELECT DISTINCT h.id, h.name FROM hosts h
     WHERE h.id IN (SELECT host_id FROM vms WHERE id = ANY ($1::uuid[])) OR h.id IN (SELECT host_id FROM captures WHERE id = $2)`,
    [[vm_id, newVmId], custom_image_id],
  )
  expect(hosts).toHaveLength(1)
  const [host] = hosts
  await service.simulator('us-west1-a').setHostLost(host!.name, true)
  await service.clock.advance('31 seconds')
  await service.server.reconciler.reports()
  const token = service.credentials.operator_key
  await service.ok('adminHostForget', { token, params: { host_id: host!.id } })
  await eventually(
    async () =>
      (await service.ok('customImageList', { query: { names: 'local:latest' } })).items.length === 0,
  )
  const { items } = await service.ok('eventList', { query: { type: 'custom_image.lost' } })
  expect(items).toMatchObject([{ resource_id: custom_image_id }])
})
