import { addOrganization, addProject, ownerToken, setPayment, tokenOfNew } from '@slipway/testing/people.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
let owner: string
let vmId: string
let strangersVm: string
beforeAll(async () => {
  service = await startService()
  const { organization_id, project_id } = service.credentials
  const resources = resourcesOf(service)
  owner = await ownerToken(service)
  vmId = await resources.newVm({ name: 'train-7' })
  await resources.newVm({ name: 'pretrain' })
  await resources.newVm({ name: 'big-train' })
  await resources.newDisk({ name: 'train' })
  await resources.newRule({ name: 'allow-train' })
  const other = await addProject(service, owner, organization_id, 'Trains of tomorrow')
  await service.ok('networkCreate', {
    params: { project_id: other },
    token: owner,
    body: { name: 'rails', cidr: '10.77.0.0/16' },
  })

  const elsewhere = await addOrganization(service.database, 'Elsewhere trains')
  const stranger = await tokenOfNew(service.database, { memberOf: { [elsewhere]: 'owner' } })
  const theirs = await addProject(service, stranger, elsewhere, 'theirs')
  await setPayment(service.database, elsewhere, 'active')
  const accepted = await service.ok('vmCreate', {
    params: { project_id: theirs },
    token: stranger,
    body: vmBody({ name: 'train-of-others' }),
  })
  strangersVm = accepted.operation.metadata.id
  expect(project_id).not.toBe(theirs)
})
afterAll(() => service.close())

const find = async (q: string) =>
  (await service.ok('organizationSearch', { token: owner, query: { q } })).items
const findAll = async (q: string) =>
  (await service.ok('adminSearch', { token: service.credentials.operator_key, query: { q } })).items
const names = (items: { resource_type: string; name: string }[]) =>
  items.map(({ resource_type, name }) => `${resource_type} ${name}`)

test('a search ranks exact names first, then prefixes, then words, then other matches', async () => {
  expect(names(await find('train'))).toEqual([
    'disk train',
    'vm train-7',
    'project Trains of tomorrow',
    'vm big-train',
    'firewall_rule allow-train',
    'vm pretrain',
  ])
  expect(names(await find('TRAIN-7'))).toEqual(['vm train-7'])
})

test('a search finds resources by id, by id prefix and by address', async () => {
  const vm = await service.ok('vmGet', { params: { vm_id: vmId } })
  const [addresses] = vm.network_interfaces[0]!.ips
  const found = {
    resource_type: 'vm',
    resource_id: vmId,
    name: 'train-7',
    state: 'STATE_RUNNING',
    location: 'us-east1-a',
    address: addresses!.public_ipv4.address,
    project_id: service.credentials.project_id,
    organization_id: service.credentials.organization_id,
  }
  for (const q of [vmId, vmId.toUpperCase(), found.address, addresses!.private_ipv4.address])
    expect(await find(q), q).toEqual([expect.objectContaining(found)])
  expect(names(await find(vmId.slice(0, 13)))).toContain('vm train-7')
  expect(names(await find('10.77.0.0/16'))).toEqual(['network rails'])
})

test('a search finds groups, templates, snapshots, images and reserved addresses', async () => {
  const resources = resourcesOf(service)
  const { name: _, ...vm } = vmBody()
  const ended = (accepted: { operation: { operation_id: string } }) =>
    service.ended(accepted.operation.operation_id)
  await ended(
    await service.ok('instanceGroupCreate', { body: { name: 'harbour-group', desired_count: 1, vm } }),
  )
  for (const new_version of [false, true])
    await service.ok('instanceTemplateCreate', { body: { name: 'harbour-template', new_version, ...vm } })
  const disk_id = await resources.newDisk({ name: 'data' })
  await ended(await service.ok('snapshotCreate', { body: { name: 'harbour-snapshot', disk_id } }))
  await ended(await service.ok('customImageCreate', { body: { name: 'harbour-image', disk_id } }))
  const address = await service.ok('addressCreate', {
    body: { name: 'harbour-address', location: 'us-east1-a' },
  })
  const newest = (await service.ok('instanceTemplateList')).items[0]!
  const found = await find('harbour')
  expect(names(found).toSorted()).toEqual([
    'address harbour-address',
    'custom_image harbour-image:latest',
    'instance_group harbour-group',
    'instance_template harbour-template',
    'snapshot harbour-snapshot',
    'vm harbour-group-1',
  ])
  expect(found.find(({ resource_type }) => resource_type === 'instance_template')).toMatchObject({
    resource_id: newest.id,
  })
  expect(await find(address.address)).toMatchObject([{ resource_type: 'address', resource_id: address.id }])
})

test('operators find snapshots, images and reserved addresses of all tenants by name, id and address', async () => {
  const resources = resourcesOf(service)
  const disk_id = await resources.newDisk({ name: 'quay-data' })
  const created = async (accepted: { operation: { operation_id: string; metadata: { id: string } } }) => {
    await service.ended(accepted.operation.operation_id)
    return accepted.operation.metadata.id
  }
  const snapshot = await created(
    await service.ok('snapshotCreate', { body: { name: 'quay-snapshot', disk_id } }),
  )
  const image = await created(
    await service.ok('customImageCreate', { body: { name: 'quay-image', disk_id } }),
  )
  const reserved = await service.ok('addressCreate', {
    body: { name: 'quay-address', location: 'us-east1-a' },
  })
  expect(names(await findAll('quay')).toSorted()).toEqual([
    'address quay-address',
    'custom_image quay-image:latest',
    'snapshot quay-snapshot',
  ])
  for (const [id, name] of [
    [snapshot, 'snapshot quay-snapshot'],
    [image, 'custom_image quay-image:latest'],
    [reserved.id, 'address quay-address'],
    [reserved.address, 'address quay-address'],
  ] as const)
    expect(names(await findAll(id))).toEqual([name])
  const { project_id } = service.credentials
  expect(await findAll('quay-address')).toMatchObject([{ project_id, location: 'us-east1-a' }])
})

test('a search shows no resources of other tenants and no deleted resources', async () => {
  expect(await find('others')).toEqual([])
  expect(await find(strangersVm)).toEqual([])
  const resources = resourcesOf(service)
  await resources.succeeded(await resources.removeVm(await resources.newVm({ name: 'fleeting' })))
  expect(await find('fleeting')).toEqual([])
})

test('a search treats special characters literally', async () => {
  for (const q of ['%', '_', "'", '\\', '*', '"; DROP TABLE vms', ' ']) {
    const found = names(await find(q))
    if (q === '%') expect(found).toEqual([])
  }
})

test('a search returns the twenty best matches', async () => {
  await service.sql(
    `INSERT INTO disks (id, project_id, name, type, size, size_gib, location, block_size, serial_number, state)
     SELECT gen_random_uuid(), $1, 'many-' || n, 'persistent-ssd', '1GiB', 1, 'us-east1-a', 512, 's', 'available'
     FROM generate_series(1, 30) n`,
    [service.credentials.project_id],
  )
  expect(await find('many')).toHaveLength(20)
  expect(names(await find('many-3'))[0]).toBe('disk many-3')
})

test('operators find hosts, tenants, users and VMs of all tenants', async () => {
  expect(names(await findAll('train'))).toEqual(
    expect.arrayContaining([
      'vm train-7',
      'vm train-of-others',
      'organization Elsewhere trains',
      'project Trains of tomorrow',
    ]),
  )
  expect(await findAll(strangersVm)).toEqual([
    expect.objectContaining({
      name: 'train-of-others',
      project_name: 'theirs',
      organization_name: 'Elsewhere trains',
    }),
  ])
  const { email } = service.credentials
  expect(names(await findAll(email))[0]).toBe(`user ${email}`)
  const [host] = (await service.ok('adminHostList', { token: service.credentials.operator_key })).items
  expect((await findAll(host!.name))[0]).toMatchObject({
    resource_type: 'host',
    location: expect.any(String),
    state: 'up',
  })
  const [address] = (await find('train-7')).map((found) => found.address)
  expect(names(await findAll(address!))).toEqual(['vm train-7'])
})

test('a search without a query is rejected', async () => {
  for (const path of [
    `/v0.1/organizations/${service.credentials.organization_id}/search`,
    '/v0.1/admin/search',
  ])
    for (const query of ['', '?q=', `?q=${'x'.repeat(101)}`]) {
      const token = path.includes('admin') ? service.credentials.operator_key : owner
      expect((await service.request('GET', `${path}${query}`, { token })).status).toBe(400)
    }
})
