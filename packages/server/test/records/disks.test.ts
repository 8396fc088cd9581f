import { setPayment } from '@slipway/testing/people.ts'
import { freshName, resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let resources: ReturnType<typeof resourcesOf>

beforeAll(async () => {
  service = await startService((config) => {
    config.locations.find(({ name }) => name === 'us-west1-a')!.storage = 'local'
  })
  resources = resourcesOf(service)
})
afterAll(() => service.close())

const change = (disk_id: string, body: unknown) => service.call('diskUpdate', { params: { disk_id }, body })
const read = (disk_id: string) => service.ok('diskGet', { params: { disk_id } })
const remove = (disk_id: string) => service.call('diskDelete', { params: { disk_id } })

test('renaming, describing and protecting a disk return an operation that has already succeeded', async () => {
  const id = await resources.newDisk({ description: 'raw data' })
  expect(await read(id)).toMatchObject({ description: 'raw data', deletion_protection: false, labels: {} })
  const [name, labels] = [freshName('renamed'), { team: 'ml' }]
  const body = { name, description: '', labels, deletion_protection: true }
  const { operation } = (await change(id, body)).body
  expect(operation).toMatchObject({
    state: 'SUCCEEDED',
    metadata: { operation_name: 'UPDATE', type: 'disk', id, request: body },
    result: { id, name, description: '', labels, deletion_protection: true },
  })
  expect(operation.completed_at).toBe(operation.started_at)
  expect(operation.result).toEqual(await read(id))
  const params = { operation_id: operation.operation_id }
  expect(await service.ok('diskOperationGet', { params })).toEqual(operation)
  expect(await service.ok('operationSteps', { params })).toEqual({ items: [] })
})

test('a protected disk cannot be deleted until its protection is removed', async () => {
  const id = await resources.newDisk({ deletion_protection: true })
  const refused = await remove(id)
  expect(refused).toMatchObject({ status: 409, body: { code: 'protected' } })
  await change(id, { deletion_protection: false })
  await resources.succeeded((await remove(id)).body)
})

test('a disk cannot get the name of another disk', async () => {
  const [taken, id] = [freshName('taken'), await resources.newDisk()]
  await resources.newDisk({ name: taken })
  const before = await read(id)
  expect(await change(id, { name: taken, description: 'new' })).toMatchObject({
    status: 409,
    body: { code: 'already_exists' },
  })
  expect(await read(id)).toEqual(before)
})

test('the description of a disk can be changed while the disk grows', async () => {
  const id = await resources.newDisk({ size: '10GiB' })
  await service.simulator().addFault({ method: 'growDisk', kind: 'fail', times: 100 })
  const growth = await resources.grow(id, '20GiB')
  expect((await change(id, { description: 'growing' })).body.operation.state).toBe('SUCCEEDED')
  expect(await read(id)).toMatchObject({ state: 'resizing', description: 'growing' })
  await service.simulator().clearFaults()
  expect((await service.advanceUntilEnded(growth.operation.operation_id)).state).toBe('SUCCEEDED')
  expect(await read(id)).toMatchObject({ state: 'available', size: '20GiB', description: 'growing' })
})

test('a disk that is being deleted cannot be changed', async () => {
  const id = await resources.newDisk()
  await service.simulator().addFault({ method: 'removeDisk', kind: 'fail', times: 100 })
  const deletion = await resources.removeDisk(id)
  expect(await change(id, { name: freshName('late') })).toMatchObject({
    status: 409,
    body: { code: 'conflict' },
  })
  await service.simulator().clearFaults()
  expect((await service.advanceUntilEnded(deletion.operation.operation_id)).state).toBe('SUCCEEDED')
})

test.each([
  [{}, /either size, or any of name, labels/],
  [{ size: '20GiB', name: 'x' }, /send either size, or any of/],
  [{ description: 'two\nlines' }, /without line breaks/],
  [{ deletion_protection: 'yes' }, /true or false/],
])('a disk update such as %j is rejected', async (body, message) => {
  const response = await change(await resources.newDisk(), body)
  expect(response).toMatchObject({ status: 400, body: { message: expect.stringMatching(message) } })
})

test('only growing a disk needs a working payment method, changing its description does not', async () => {
  const id = await resources.newDisk()
  const { organization_id } = service.credentials
  await setPayment(service.database, organization_id, 'declined')
  let gib = 10
  const grow = async () => (await change(id, { size: `${++gib}GiB` })).status
  await expect.poll(grow).toBe(402)
  expect((await change(id, { description: 'kept' })).status).toBe(200)
  await setPayment(service.database, organization_id, 'active')
  await expect.poll(grow).toBe(200)
})

test.each([
  ['persistent-ssd', '10GiB'],
  ['shared-volume', '1TiB'],
])(
  'a %s in a location with local storage can be used only on the host of its first VM',
  async (type, size) => {
    const location = 'us-west1-a'
    const wholeHost = { location, type: type === 'shared-volume' ? 'a100.8x' : 'a40.8x' }
    const disk_id = await resources.newDisk({ type, size, location })
    const first = await resources.newVm({ ...wholeHost, disks: [{ disk_id, mode: 'read-write' }] })
    const second = await resources.newVm(wholeHost)
    await resources.succeeded(await resources.detach(first, disk_id))
    const elsewhere = await service.call('vmAttachDisks', {
      params: { vm_id: second },
      body: { attach_disks: [{ disk_id, attachment_type: 'data', mode: 'read-write' }] },
    })
    expect(elsewhere).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('not on the same host') },
    })
    // The host of the disk is full, and other hosts are not.
    const body = vmBody({ ...wholeHost, disks: [{ disk_id, mode: 'read-write' }] })
    expect(await service.call('vmCreate', { body })).toMatchObject({
      status: 409,
      body: { code: 'out_of_stock' },
    })
    await resources.succeeded(await resources.attach(first, disk_id))
  },
)

test.each([
  ['persistent-ssd', '1GiB', 16, 'disks'],
  ['shared-volume', '1TiB', 4, 'shared volumes'],
])('a creation with one %s more than the maximum per VM is rejected', async (type, size, most, title) => {
  const ids = await Promise.all(Array.from({ length: most + 1 }, () => resources.newDisk({ type, size })))
  const create = (disks: string[]) =>
    service.call('vmCreate', {
      body: vmBody({ type: 'a100.8x', disks: disks.map((disk_id) => ({ disk_id, mode: 'read-write' })) }),
    })
  expect(await create(ids)).toMatchObject({
    status: 400,
    body: { details: [{ message: `a VM can have at most ${most} ${title}` }] },
  })
  await resources.succeeded((await create(ids.slice(1))).body)
})
