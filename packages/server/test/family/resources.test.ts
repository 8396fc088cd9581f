import { freshName } from '@slipway/testing/resources.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { familyClient } from './client.ts'
import { instances, interfaces, location, startFamily, vmBody } from './service.ts'

/** Tests the requests of public clients of this family of APIs, and the values that they need in the responses. */

type Family = Awaited<ReturnType<typeof startFamily>>
let family: Family
let ok: Family['ok']
let send: Family['send']
let ended: Family['ended']
let createVm: Family['createVm']
let service: Family['service']
let project: string

beforeAll(async () => {
  family = await startFamily()
  ;({ ok, send, ended, createVm, service, project } = family)
})
afterAll(() => service?.close())

test('both versions of the compatible API have the same routes', async () => {
  for (const version of ['/v1', '/v1alpha5'])
    expect((await ok('GET', `${version}/locations`)).items).toContain(location)
})

test('projects, organizations and identities have the fields that clients expect', async () => {
  const { project_id: id, organization_id } = service.credentials
  const { items } = await ok('GET', '/v1/organizations/projects?project_name=demo')
  expect(items.map((item: { name: string }) => item.name)).toEqual(items.map(() => 'demo'))
  const known = await ok('GET', `/v1/organizations/projects/${id}`)
  expect(known).toEqual({ id, name: known.name, organization_id, relation: '', resources: {} })
  const { project: made } = await ok('POST', '/v1/organizations/projects', { name: 'made', organization_id })
  const renamed = await ok('PUT', `/v1/organizations/projects?project_id=${made.id}`, { name: 'renamed' })
  expect(renamed.project).toMatchObject({ id: made.id, name: 'renamed' })
  expect((await ok('GET', '/v1/organizations/projects?project_name=renamed')).items).toHaveLength(1)
  await ok('DELETE', `/v1/organizations/projects/${made.id}`)
  expect((await ok('GET', '/v1/organizations/entities')).items).toMatchObject([{ id: organization_id }])
  expect((await ok('GET', '/v1/users/identities')).identity).toMatchObject({
    id: family.key.id,
    email: '',
  })
})

test('the catalogue has the GPU types and quota names that clients expect', async () => {
  const { items: types } = await ok('GET', `${project}/compute/vms/types`)
  const gpuTypes = new Set(types.map((type: { gpu_type: string }) => type.gpu_type))
  expect(gpuTypes).toEqual(new Set(['A40-PCIe-48GB', 'A100-PCIe-40GB', 'A100-PCIe-80GB', 'L40S-48GB']))
  expect(types).toHaveLength(17)
  const { items: capacities } = await ok(
    'GET',
    `/v1/capacities?location=${location}&product_name=a100-80gb.8x`,
  )
  expect(capacities).toEqual([{ type: 'a100-80gb.8x', location, quantity: expect.any(Number) }])
  const { quotas } = await ok('GET', `${project}/quotas`)
  const prefixOf = (type: string) =>
    quotas.find(
      (quota: { programmatic_name: string; category: string }) =>
        quota.category.includes('Instance') && type.startsWith(quota.programmatic_name),
    )
  expect(prefixOf('a100-80gb.1x')).toMatchObject({ programmatic_name: 'a100-80gb', type: 'a100-80gb_gpus' })
  expect(prefixOf('a100.1x')).toMatchObject({
    ...{ programmatic_name: 'a100', category: 'GPU Instance' },
    ...{ max: expect.any(Number), used: expect.any(Number), available: expect.any(Number) },
    description: expect.any(String),
  })
  const { items: images } = await ok('GET', '/v1/compute/images')
  expect(images.map((image: { name: string }) => image.name)).toContain('ubuntu22.04-nvidia:latest')
  expect(await ok('GET', `${project}/networking/ib-networks`)).toEqual({ items: [] })
})

test('a VM is created from an image alias, read, listed, stopped, resized, started and deleted', async () => {
  const body = vmBody({ location: '', network_interfaces: interfaces('dynamic') })
  const { operation } = await ok('POST', `${project}/${instances}`, body)
  expect(operation).toMatchObject({ state: 'IN_PROGRESS', result: null, completed_at: '' })
  const { result: vm, ...created } = await ended({ operation }, instances)
  expect(created).toMatchObject({
    state: 'SUCCEEDED',
    metadata: { operation_name: 'CREATE', type: 'vm', id: vm.id },
  })
  const path = `${project}/${instances}/${vm.id}`
  const read = await ok('GET', path)
  expect(read).toEqual({ ...vm, cost_usd: read.cost_usd })
  expect(vm).toMatchObject({
    ...{ state: 'STATE_RUNNING', name: body.name, type: 'a100.1x', image: 'ubuntu22.04-nvidia:latest' },
    ...{ location: expect.stringMatching(/./), host_channel_adapters: [], nvlink_domain_id: '', pod_id: '' },
    maintenance_policy: '',
    created_at: expect.stringMatching(/:\d\dZ$/),
    disks: [{ attachment_type: 'os', size: '128GiB' }],
    network_interfaces: [
      {
        ...{ interface_type: 'ethernet', external_dns_name: '' },
        ips: [{ private_ipv4: { address: expect.any(String) }, public_ipv4: { type: 'dynamic' } }],
      },
    ],
  })
  const list = await ok('GET', `${project}/${instances}?limit=5&names=${body.name}&states=STATE_RUNNING`)
  expect(list).toMatchObject({ items: [{ id: vm.id }], next_page_token: '', prev_page_token: '' })
  const change = async (request: object) => (await ended(await ok('PATCH', path, request), instances)).result
  expect(await change({ action: 'STOP' })).toMatchObject({ state: 'STATE_SHUTOFF' })
  expect(await change({ action: 'UPDATE', type: 'a100.2x' })).toMatchObject({ type: 'a100.2x' })
  expect(await change({ action: 'START' })).toMatchObject({ state: 'STATE_RUNNING', type: 'a100.2x' })
  expect(await change({ action: 'RESET' })).toMatchObject({ state: 'STATE_RUNNING' })
  const deleted = await ended(await ok('DELETE', path), instances)
  expect(deleted).toMatchObject({ state: 'SUCCEEDED', result: null })
  expect(await send('GET', path)).toMatchObject({ status: 404, body: { code: 'not_found' } })
})

test('pages of the list of VMs follow next_token', async () => {
  const names = [(await createVm()).name, (await createVm()).name]
  const first = await ok('GET', `${project}/${instances}?limit=1`)
  const second = await ok('GET', `${project}/${instances}?limit=1&next_token=${first.next_page_token}`)
  expect([second.items[0].name, first.items[0].name]).toEqual(names)
})

test('a VM without a public address shows the type none', async () => {
  const vm = await createVm({ network_interfaces: interfaces('none') })
  const [{ ips }] = vm.network_interfaces
  expect(ips[0].public_ipv4).toEqual({ id: '', address: '', type: 'none' })
})

test('disks have sizes in GiB, and are attached, detached, resized and deleted', async () => {
  const disks = 'storage/disks'
  const body = { name: freshName('disk'), size: '1TiB', location, type: 'persistent-ssd', block_size: 4096 }
  const { result: disk } = await ended(await ok('POST', `${project}/${disks}`, body), disks)
  expect(disk).toMatchObject({ size: '1024GiB', dns_name: '', vips: [], block_size: 4096 })
  expect(await ok('GET', `${project}/${disks}/${disk.id}`)).toEqual(disk)
  expect((await ok('GET', `${project}/${disks}`)).items).toContainEqual(disk)
  const vm = await createVm()
  const path = `${project}/${instances}/${vm.id}`
  const attach_disks = [{ disk_id: disk.id, attachment_type: 'data', mode: 'read-write' }]
  const attached = await ended(await ok('POST', `${path}/attach-disks`, { attach_disks }), instances)
  expect(attached.result.disks).toMatchObject([{}, { id: disk.id, size: '1024GiB' }])
  const detached = await ended(
    await ok('POST', `${path}/detach-disks`, { detach_disks: [disk.id] }),
    instances,
  )
  expect(detached.result.disks).toHaveLength(1)
  const resized = await ended(await ok('PATCH', `${project}/${disks}/${disk.id}`, { size: '2TiB' }), disks)
  expect(resized).toMatchObject({ state: 'SUCCEEDED', result: { id: disk.id, size: '2048GiB' } })
  expect(await ended(await ok('DELETE', `${project}/${disks}/${disk.id}`), disks)).toMatchObject({
    result: null,
  })
})

test('networks and subnets change immediately, with an operation that can be read later', async () => {
  const networks = `${project}/networking/vpc-networks`
  const subnets = `${project}/networking/vpc-subnets`
  const { network } = await ok('POST', networks, { name: freshName('net'), cidr: '10.40.0.0/16' })
  const { subnet } = await ok('POST', subnets, {
    ...{ name: freshName('sub'), cidr: '10.40.0.0/24', vpc_network_id: network.id, location },
    nat_gateway_enabled: false,
  })
  expect(subnet).toMatchObject({ nat_gateways: [], vpc_network_id: network.id })
  expect(await ok('GET', `${networks}/${network.id}`)).toEqual({ ...network, subnets: [subnet.id] })
  expect(await ok('GET', `${subnets}/${subnet.id}`)).toEqual(subnet)
  expect((await ok('GET', networks)).items).toContainEqual({ ...network, subnets: [subnet.id] })
  expect((await ok('GET', subnets)).items).toContainEqual(subnet)
  const changes = [
    await ok('PATCH', `${subnets}/${subnet.id}`, { name: 'renamed-sub', nat_gateway_action: 'disable' }),
    await ok('PATCH', `${networks}/${network.id}`, { name: 'renamed-net' }),
    await ok('DELETE', `${subnets}/${subnet.id}`),
    await ok('DELETE', `${networks}/${network.id}`),
  ]
  expect(changes.map(({ operation }) => [operation.state, operation.result?.name ?? null])).toEqual([
    ['SUCCEEDED', 'renamed-sub'],
    ['SUCCEEDED', 'renamed-net'],
    ['SUCCEEDED', null],
    ['SUCCEEDED', null],
  ])
  const another = await service.another()
  const elsewhere = familyClient(another, family.key)
  for (const { operation } of changes)
    expect((await elsewhere('GET', `${subnets}/operations/${operation.operation_id}`)).body).toEqual(
      operation,
    )
  expect(await send('GET', `${networks}/${network.id}`)).toMatchObject({ status: 404 })
})

test('a rule for all ports can be written in two ways and is read as 1-65535', async () => {
  const rules = 'networking/vpc-firewall-rules'
  const [network] = (await ok('GET', `${project}/networking/vpc-networks`)).items
  const body = {
    ...{ name: freshName('rule'), vpc_network_id: network.id, action: 'ACTION_ALLOW', direction: 'INGRESS' },
    ...{ protocols: ['tcp'], sources: [{ cidr: '203.0.113.0/24' }], source_ports: ['1-65535'] },
    ...{ destinations: [{ cidr: network.cidr, resource_id: '' }], destination_ports: ['22', '8000-8010'] },
  }
  const { result: rule } = await ended(await ok('POST', `${project}/${rules}`, body), rules)
  expect(rule).toMatchObject({
    ...{ action: 'allow', direction: 'ingress', state: 'active', source_ports: ['1-65535'] },
    destination_ports: ['22', '8000-8010'],
  })
  const path = `${project}/${rules}/${rule.id}`
  expect(await ok('GET', path)).toEqual(rule)
  expect((await ok('GET', `${project}/${rules}`)).items).toContainEqual(rule)
  const { protocols, sources, destinations, name } = body
  const change = { name, protocols, sources, destinations, source_ports: ['*'], destination_ports: ['*'] }
  const changed = await ended(await ok('PATCH', path, change), rules)
  expect(changed.result).toMatchObject({ destination_ports: ['1-65535'], source_ports: ['1-65535'] })
  expect(
    await send('PATCH', path, { body: { ...change, sources: [{ cidr: '203.0.113.7' }] } }),
  ).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('203.0.113.7/32') },
  })
  expect(await ended(await ok('DELETE', path), rules)).toMatchObject({ state: 'SUCCEEDED' })
})

test('a shared volume is shown without a DNS name and without addresses', async () => {
  const disks = 'storage/disks'
  const body = { name: freshName('volume'), size: '1TiB', location, type: 'shared-volume' }
  const { result: volume } = await ended(await ok('POST', `${project}/${disks}`, body), disks)
  expect(volume).toMatchObject({ type: 'shared-volume', size: '1024GiB', dns_name: '', vips: [] })
  await ended(await ok('DELETE', `${project}/${disks}/${volume.id}`), disks)
})

test('a rule that is not active yet is inactive', async () => {
  const rules = 'networking/vpc-firewall-rules'
  await createVm()
  const [network] = (await ok('GET', `${project}/networking/vpc-networks`)).items
  const engine = service.simulator()
  await engine.addFault({ method: 'applyFirewall', kind: 'fail', times: 10_000 })
  const created = await ok('POST', `${project}/${rules}`, {
    ...{ name: freshName('rule'), vpc_network_id: network.id, action: 'ACTION_ALLOW', direction: 'INGRESS' },
    ...{ protocols: ['tcp'], sources: [{ cidr: '203.0.113.0/24' }], source_ports: ['*'] },
    ...{ destinations: [{ cidr: network.cidr, resource_id: '' }], destination_ports: ['22'] },
  })
  const path = `${project}/${rules}/${created.operation.metadata.id}`
  expect(await ok('GET', path)).toMatchObject({ state: 'inactive' })
  await engine.clearFaults()
  expect((await ended(created, rules)).result).toMatchObject({ state: 'active' })
})
