import { freshName } from '@slipway/testing/resources.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FamilyResponse } from './client.ts'
import { instances, interfaces, location, startFamily, vmBody } from './service.ts'

/** Tests static addresses, copies, templates and groups in the compatible API, and the requests that it refuses. */

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

test('custom images and snapshots can be created, changed, used and deleted', async () => {
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

test('VMs and groups can be created from templates', async () => {
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

test('unsupported features are refused with 400: InfiniBand, NVLink and NAT gateways', async () => {
  const [network] = (await ok('GET', `${project}/networking/vpc-networks`)).items
  const subnet = { name: 'nat', cidr: '172.27.200.0/24', vpc_network_id: network.id, location }
  const template = { template_name: 'ib', type: 'a40.1x', ssh_public_key: sshKey }
  const requests: [string, object][] = [
    [instances, vmBody({ host_channel_adapters: [{ ib_partition_id: family.key.id }] })],
    [instances, vmBody({ nvlink_domain_id: family.key.id })],
    ['networking/vpc-subnets', { ...subnet, nat_gateway_enabled: true }],
    ['compute/instance-templates', { ...template, ib_partition_id: family.key.id }],
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

test('a lack of capacity or quota is shown as a failed operation, and an identical request gets the same one', async () => {
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

test('operations that only this API shows are limited to the newest 1,000 of a project', async () => {
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
