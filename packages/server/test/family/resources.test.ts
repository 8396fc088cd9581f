import { ownerToken } from '@slipway/testing/people.ts'
import { freshName } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FamilyResponse, familyClient, type SigningKey } from '../support/family-client.ts'

/** The requests that public clients of this family of APIs send, and the values that they need in the responses. */

let service: TestService
let send: ReturnType<typeof familyClient>
let project: string
let organizationKey: SigningKey
const location = 'us-east1-a'

beforeAll(async () => {
  service = await startService((config) => {
    config.server.familyApi = true
  })
  const token = await ownerToken(service)
  organizationKey = await service.ok('organizationKeyCreate', {
    token,
    body: { name: 'terraform', role: 'owner', kind: 'signing' },
  })
  send = familyClient(service, organizationKey)
  project = `/v1alpha5/projects/${service.credentials.project_id}`
})
afterAll(() => service?.close())

const ok = async (method: string, path: string, body?: unknown) => {
  const response = await send(method, path, { body })
  expect(response, `${method} ${path} ${JSON.stringify(response.body)}`).toMatchObject({ status: 200 })
  expect(response.headers.get('content-type')).toMatch(/^application\/json/)
  return response.body
}
/** Polls an operation until it ends. */
async function ended({ operation }: FamilyResponse['body'], resource: string) {
  await service.ended(operation.operation_id)
  return ok('GET', `${project}/${resource}/operations/${operation.operation_id}`)
}
const instances = 'compute/vms/instances'
const interfaces = (type: string) => [
  {
    ...{
      external_dns_name: '',
      id: '',
      interface_type: '',
      mac_address: '',
      name: '',
      network: '',
      subnet: '',
    },
    ips: [{ private_ipv4: null, public_ipv4: { address: '', id: '', type } }],
  },
]
const vmBody = (more: object = {}) => ({
  ...{ name: freshName('vm'), type: 'a100.1x', location, image: 'ubuntu22.04-nvidia-pcie-docker:latest' },
  ...{ ssh_public_key: sshKey, startup_script: '', shutdown_script: '' },
  install_crusoe_watch_agent: true,
  ...more,
})
const createVm = async (more: object = {}) => {
  const operation = await ended(await ok('POST', `${project}/${instances}`, vmBody(more)), instances)
  expect(operation.state).toBe('SUCCEEDED')
  return operation.result
}

test('both versions have the same routes', async () => {
  for (const version of ['/v1', '/v1alpha5'])
    expect((await ok('GET', `${version}/locations`)).items).toContain(location)
})

test('projects, organizations and identities', async () => {
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
    id: organizationKey.id,
    email: '',
  })
})

test('the catalogue has the GPU types and quota names that clients know', async () => {
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

test('a static address is reserved with the VM, and stays for the next VM of that name', async () => {
  const name = freshName('static')
  const addressOf = (vm: FamilyResponse['body']) => vm.network_interfaces[0].ips[0].public_ipv4
  const vm = await createVm({ name, network_interfaces: interfaces('static') })
  expect(addressOf(vm)).toMatchObject({ type: 'static' })
  await ended(await ok('DELETE', `${project}/${instances}/${vm.id}`), instances)
  const again = await createVm({ name, network_interfaces: interfaces('static') })
  expect(addressOf(again)).toEqual(addressOf(vm))
  const path = `${project}/${instances}/${again.id}`
  const update = async (type: string, id = '') => {
    const body = { action: 'UPDATE', network_interfaces: [{ ips: [{ public_ipv4: { id, type } }] }] }
    const { operation } = await ok('PATCH', path, body)
    const url = `${project}/${instances}/operations/${operation.operation_id}`
    await expect.poll(async () => (await ok('GET', url)).state).toBe('SUCCEEDED')
    return addressOf((await ok('GET', url)).result)
  }
  const dynamic = await update('dynamic')
  expect(dynamic).toMatchObject({ type: 'dynamic' })
  expect(await update('static', addressOf(vm).id)).toEqual(addressOf(vm))
  const plain = await createVm()
  const { operation } = await ok('PATCH', `${project}/${instances}/${plain.id}`, {
    action: 'UPDATE',
    network_interfaces: [{ ips: [{ public_ipv4: { id: addressOf(plain).id, type: 'static' } }] }],
  })
  expect(operation).toMatchObject({ state: 'SUCCEEDED' })
  expect(addressOf(operation.result)).toEqual({ ...addressOf(plain), type: 'static' })
  expect(
    await send('POST', `${project}/${instances}`, {
      body: vmBody({ location: '', network_interfaces: interfaces('static') }),
    }),
  ).toMatchObject({ status: 400 })
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

test('networks and subnets change at once, with an operation that stays readable', async () => {
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
  const elsewhere = familyClient(another, organizationKey)
  for (const { operation } of changes)
    expect((await elsewhere('GET', `${subnets}/operations/${operation.operation_id}`)).body).toEqual(
      operation,
    )
  expect(await send('GET', `${networks}/${network.id}`)).toMatchObject({ status: 404 })
})

test('a rule for all ports is written in two ways and read as 1-65535', async () => {
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

test('custom images and snapshots', async () => {
  const images = 'compute/custom-images'
  const snapshots = 'storage/snapshots'
  const vm = await createVm()
  await ended(await ok('PATCH', `${project}/${instances}/${vm.id}`, { action: 'STOP' }), instances)
  const { result: image } = await ended(
    await ok('POST', `${project}/${images}`, {
      ...{ name: 'trainer:v1', DiskID: vm.disks[0].id, description: 'first', tags: ['cuda'] },
    }),
    images,
  )
  expect(image).toMatchObject({ name: 'trainer:v1', tags: ['cuda'], locations: [vm.location] })
  const path = `${project}/${images}/${image.id}`
  const changed = await ok('PATCH', path, { description: 'second' })
  expect(changed.operation).toMatchObject({ state: 'SUCCEEDED', result: { description: 'second' } })
  expect((await ok('PATCH', `${path}/edit-tags`, { tags: [] })).operation.result.tags).toEqual([])
  expect(await ok('GET', path)).toMatchObject({ description: 'second', tags: [] })
  expect((await ok('GET', `${project}/${images}`)).items).toMatchObject([{ id: image.id }])
  const from = await createVm({ image: '', custom_image: image.id })
  expect(from).toMatchObject({ custom_image_id: image.id })
  expect(await ended(await ok('DELETE', path), images)).toMatchObject({ state: 'SUCCEEDED' })

  const disk = { name: freshName('disk'), size: '10GiB', location, type: 'persistent-ssd' }
  const { result } = await ended(await ok('POST', `${project}/storage/disks`, disk), 'storage/disks')
  const body = { name: freshName('snap'), disk_id: result.id }
  const { result: snapshot } = await ended(await ok('POST', `${project}/${snapshots}`, body), snapshots)
  expect(snapshot).toMatchObject({ created_from: result.id, size: '10GiB' })
  const renamed = await ok('PATCH', `${project}/${snapshots}/${snapshot.id}`, { name: 'renamed-snap' })
  expect(renamed.operation.result).toMatchObject({ name: 'renamed-snap' })
  expect((await ok('GET', `${project}/${snapshots}`)).items).toMatchObject([{ id: snapshot.id }])
  expect(await ok('GET', `${project}/${snapshots}/${snapshot.id}`)).toMatchObject({ id: snapshot.id })
  const copy = { name: freshName('copy'), snapshot_id: snapshot.id }
  const copied = await ended(await ok('POST', `${project}/storage/disks`, copy), 'storage/disks')
  expect(copied).toMatchObject({ state: 'SUCCEEDED', result: { size: '10GiB' } })
  await ended(await ok('DELETE', `${project}/${snapshots}/${snapshot.id}`), snapshots)
})

test('templates, VMs from templates, and groups', async () => {
  const templates = `${project}/compute/instance-templates`
  const body = {
    ...{ template_name: freshName('template'), type: 'a40.1x', location, ssh_public_key: sshKey },
    ...{ image_name: 'ubuntu22.04:latest', placement_policy: 'unspecified', startup_script: '' },
    disks: [{ size: '10GiB', type: 'persistent-ssd' }],
  }
  const template = await ok('POST', templates, body)
  expect(template).toMatchObject({
    ...{ name: body.template_name, image_name: 'ubuntu22.04:latest', disks: body.disks, location },
    ...{ public_ip_address_type: 'dynamic', ib_partition_id: '', startup_script: '' },
  })
  expect(await ok('GET', `${templates}/${template.id}`)).toEqual(template)
  expect((await ok('GET', templates)).items).toContainEqual(template)
  const bulk = `${project}/compute/vms/bulk-instances`
  const many = { name_prefix: freshName('bulk'), count: 2, instance_template_id: template.id }
  const { operation } = await ok('POST', bulk, many)
  const url = `${project}/${instances}/operations/${operation.operation_id}`
  await expect.poll(async () => (await ok('GET', url)).state).toBe('SUCCEEDED')
  const { result } = await ok('GET', url)
  expect(result.map((vm: { name: string }) => vm.name)).toEqual([1, 2].map((n) => `${many.name_prefix}-${n}`))
  expect(result[0]).toMatchObject({ instance_template_id: template.id, image: 'ubuntu22.04-nvidia:latest' })
  expect(result[0].disks).toHaveLength(2)
  const inline = { name_prefix: freshName('inline'), count: 1, instance_template: { ...body, location: '' } }
  const one = await ok('POST', bulk, { ...inline, locations: [{ location }] })
  await expect
    .poll(
      async () =>
        (await ok('GET', `${project}/${instances}/operations/${one.operation.operation_id}`)).result,
    )
    .toMatchObject([{ name: `${inline.name_prefix}-1`, location }])

  const groups = `${project}/compute/instance-groups`
  const group = await ok('POST', groups, { name: 'pool', desired_count: 2, template_id: template.id })
  expect(group).toMatchObject({ name: 'pool', desired_count: 2, template_id: template.id })
  const path = `${groups}/${group.id}`
  await expect.poll(async () => (await ok('GET', path)).state).toBe('HEALTHY')
  expect((await ok('GET', groups)).items).toMatchObject([{ id: group.id, running_instance_count: 2 }])
  const same = { name: 'pool', template_id: template.id, desired_count: { value: 1 } }
  expect(await ok('PATCH', path, same)).toMatchObject({ desired_count: 1 })
  await expect.poll(async () => (await ok('GET', path)).state).toBe('HEALTHY')
  expect(await ok('PATCH', path, { desired_count: {} })).toMatchObject({ desired_count: 0 })
  expect(await ok('DELETE', path)).toEqual({})
  expect(await ok('DELETE', `${templates}/${template.id}`)).toEqual({})
  expect(await send('GET', `${templates}/${template.id}`)).toMatchObject({ status: 404 })
})

test('a template with static addresses reserves one for each VM', async () => {
  const template = await ok('POST', `${project}/compute/instance-templates`, {
    ...{ template_name: freshName('fixed'), type: 'a40.1x', location, ssh_public_key: sshKey },
    ...{ image_name: 'ubuntu22.04:latest', public_ip_address_type: 'static' },
  })
  expect(template).toMatchObject({ public_ip_address_type: 'static' })
  const body = { name_prefix: freshName('fixed-vm'), count: 1, instance_template_id: template.id }
  const { operation } = await ok('POST', `${project}/compute/vms/bulk-instances`, body)
  const url = `${project}/${instances}/operations/${operation.operation_id}`
  await expect.poll(async () => (await ok('GET', url)).state).toBe('SUCCEEDED')
  const [vm] = (await ok('GET', url)).result
  expect(vm.network_interfaces[0].ips[0].public_ipv4).toMatchObject({ type: 'static' })
})

test('what this service does not have is refused with 400: InfiniBand, NVLink and NAT gateways', async () => {
  const [network] = (await ok('GET', `${project}/networking/vpc-networks`)).items
  const subnet = { name: 'nat', cidr: '172.27.200.0/24', vpc_network_id: network.id, location }
  const template = { template_name: 'ib', type: 'a40.1x', ssh_public_key: sshKey }
  const requests: [string, object][] = [
    [instances, vmBody({ host_channel_adapters: [{ ib_partition_id: organizationKey.id }] })],
    [instances, vmBody({ nvlink_domain_id: organizationKey.id })],
    ['networking/vpc-subnets', { ...subnet, nat_gateway_enabled: true }],
    ['compute/instance-templates', { ...template, ib_partition_id: organizationKey.id }],
  ]
  for (const [path, body] of requests)
    expect(await send('POST', `${project}/${path}`, { body })).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_argument',
        message: expect.stringContaining('not supported'),
        error_id: expect.any(String),
      },
    })
})

test('a lack of capacity or quota is an operation that failed, and an equal request gets it again', async () => {
  await service.sql(`UPDATE hosts SET is_schedulable = false WHERE location = 'us-east1-a'`)
  const timestamp = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const body = vmBody()
  const first = await send('POST', `${project}/${instances}`, { body, timestamp })
  expect(first).toMatchObject({
    status: 200,
    body: {
      operation: {
        ...{ state: 'FAILED', metadata: { operation_name: 'CREATE', type: 'vm', id: expect.any(String) } },
        result: { code: 'out_of_stock', message: expect.any(String) },
      },
    },
  })
  const { operation } = first.body
  expect(await ok('GET', `${project}/${instances}/operations/${operation.operation_id}`)).toEqual(operation)
  await service.sql(`UPDATE hosts SET is_schedulable = true WHERE location = 'us-east1-a'`)
  expect((await send('POST', `${project}/${instances}`, { body, timestamp })).body).toEqual(first.body)
  expect(await send('GET', `${project}/${instances}/${operation.metadata.id}`)).toMatchObject({ status: 404 })

  await service.sql(`UPDATE quotas SET max = 0 WHERE name = 'disk_gib'`)
  const disk = { name: freshName('disk'), size: '1GiB', location, type: 'persistent-ssd' }
  const refused = (await ok('POST', `${project}/storage/disks`, disk)).operation
  expect(refused).toMatchObject({ state: 'FAILED', result: { code: 'quota_exceeded' } })
  expect(await ok('GET', `${project}/storage/disks/operations/${refused.operation_id}`)).toEqual(refused)
  await service.sql(`UPDATE quotas SET max = NULL WHERE name = 'disk_gib'`)
})

test('late refusals are kept for a day, and only the newest of a project', async () => {
  const { project_id } = service.credentials
  await service.sql(
    `INSERT INTO family_operations (id, project_id, request_hash, operation)
     SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, $1, n::text::bytea, '{}' FROM generate_series(1, 1100) n`,
    [project_id],
  )
  const networks = `${project}/networking/vpc-networks`
  const { network } = await ok('POST', networks, { name: freshName('net'), cidr: '10.50.0.0/16' })
  const { operation } = await ok('DELETE', `${networks}/${network.id}`)
  const count = async () =>
    (await service.sql<{ n: number }>('SELECT count(*)::int AS n FROM family_operations'))[0]!.n
  expect(await count()).toBe(1_000)
  expect(await ok('GET', `${networks}/operations/${operation.operation_id}`)).toEqual(operation)
})
