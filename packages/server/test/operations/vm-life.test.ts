import { eventually } from '@slipway/testing/eventually.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const create = async (changes = {}) => {
  const { operation } = await service.ok('vmCreate', { body: vmBody(changes) })
  const ended = await service.ended(operation.operation_id)
  expect(ended.state).toBe('SUCCEEDED')
  return ended.metadata.id
}
const act = async (vm_id: string, body: unknown) => {
  const { operation } = await service.ok('vmUpdate', { params: { vm_id }, body })
  return service.ended(operation.operation_id)
}
const remove = async (vm_id: string) => {
  const { operation } = await service.ok('vmDelete', { params: { vm_id } })
  return service.ended(operation.operation_id)
}

test('a VM can be created, read, stopped, started, reset and deleted, and leaves nothing', async () => {
  const body = vmBody({ startup_script: '#!/bin/sh\necho hello' })
  const { operation } = await service.ok('vmCreate', { body })
  expect(operation).toMatchObject({ state: 'IN_PROGRESS', result: null, completed_at: '' })
  expect(operation.metadata).toMatchObject({ operation_name: 'CREATE', type: 'vm', request: body })
  const created = await service.ended(operation.operation_id)
  const vm_id = operation.metadata.id
  const vm = await service.ok('vmGet', { params: { vm_id } })
  expect(created.result).toEqual({ ...vm, cost_usd: expect.any(Number) })
  expect(vm).toMatchObject({ state: 'STATE_RUNNING', name: body.name, type: 'a100.1x' })
  expect(vm.ssh_destination).toBe(`ubuntu@${vm.network_interfaces[0]!.ips[0]!.public_ipv4.address}`)
  const log = await service.ok('vmSerialLog', { params: { vm_id } })
  expect(log.content).toContain('echo hello')

  expect((await act(vm_id, { action: 'STOP' })).result).toMatchObject({ state: 'STATE_SHUTOFF' })
  expect((await act(vm_id, { type: 'a100.2x' })).result).toMatchObject({ type: 'a100.2x' })
  expect((await act(vm_id, { action: 'START' })).result).toMatchObject({ state: 'STATE_RUNNING' })
  expect((await act(vm_id, { action: 'RESET' })).result).toMatchObject({ state: 'STATE_RUNNING' })
  const deleted = await remove(vm_id)
  expect(deleted).toMatchObject({ state: 'SUCCEEDED', result: null })
  expect((await service.call('vmGet', { params: { vm_id } })).status).toBe(404)

  await eventually(async () => {
    await service.server.reconciler.reports()
    const [row] = await service.sql<{ busy: number }>(
      `SELECT count(*)::int AS busy FROM gpus WHERE state <> 'free'`,
    )
    return row!.busy === 0
  })
  expect(await service.sql('SELECT FROM vms')).toEqual([])
  expect(await service.sql('SELECT FROM usage_intervals WHERE upper_inf(period)')).toEqual([])
  expect(await service.sql('SELECT FROM simulated_vms WHERE NOT is_removed')).toEqual([])
  const quotas = await service.ok('quotaList')
  expect(quotas.items.filter(({ name, used }) => used > 0 && name !== 'firewall_rules')).toEqual([])
})

test('the creation of a VM shows its steps', async () => {
  const { operation } = await service.ok('vmCreate', { body: vmBody() })
  await service.ended(operation.operation_id)
  const { items } = await service.ok('operationSteps', { params: { operation_id: operation.operation_id } })
  expect(items.map(({ name, state }) => [name, state])).toEqual([
    ['admit', 'done'],
    ['boot', 'done'],
    ['finish', 'done'],
  ])
  await remove(operation.metadata.id)
})

test('disks can be attached, grown and detached, and are kept when their VM is deleted', async () => {
  const { operation } = await service.ok('diskCreate', {
    body: { name: 'data', size: '1TiB', location: 'us-east1-a' },
  })
  const disk = await service.ended(operation.operation_id)
  expect(disk.result).toMatchObject({ name: 'data', size: '1TiB', state: 'available', block_size: 512 })
  const disk_id = disk.metadata.id
  const vm_id = await create()
  const attach = await service.ok('vmAttachDisks', {
    params: { vm_id },
    body: { attach_disks: [{ disk_id, attachment_type: 'data', mode: 'read-write' }] },
  })
  const attached = await service.ended(attach.operation.operation_id)
  expect(attached.result).toMatchObject({
    disks: [{ attachment_type: 'os' }, { id: disk_id, attachment_type: 'data' }],
  })
  expect((await service.call('diskDelete', { params: { disk_id } })).status).toBe(409)
  const grow = await service.ok('diskUpdate', { params: { disk_id }, body: { size: '2TiB' } })
  expect((await service.ended(grow.operation.operation_id)).result).toMatchObject({ size: '2TiB' })
  const detach = await service.ok('vmDetachDisks', { params: { vm_id }, body: { detach_disks: [disk_id] } })
  expect((await service.ended(detach.operation.operation_id)).state).toBe('SUCCEEDED')
  await remove(vm_id)
  const gone = await service.ok('diskDelete', { params: { disk_id } })
  expect((await service.ended(gone.operation.operation_id)).state).toBe('SUCCEEDED')
})

test('a new firewall rule opens a port of a VM, and its deletion closes the port', async () => {
  const vm_id = await create()
  const packet = {
    direction: 'ingress',
    protocol: 'tcp',
    peer: '203.0.113.7',
    destinationPort: 8888,
  } as const
  expect(await service.simulator().wouldPass(vm_id, { ...packet, destinationPort: 22 })).toBe(true)
  expect(await service.simulator().wouldPass(vm_id, packet)).toBe(false)
  const networks = await service.ok('networkList')
  const { operation } = await service.ok('firewallRuleCreate', {
    body: {
      name: 'jupyter',
      vpc_network_id: networks.items[0]!.id,
      action: 'allow',
      direction: 'ingress',
      protocols: ['tcp'],
      sources: [{ cidr: '203.0.113.0/24' }],
      destinations: [{ resource_id: vm_id }],
      destination_ports: ['8888'],
    },
  })
  expect(operation.metadata.request).toMatchObject({
    direction: 'DIRECTION_INGRESS',
    action: 'ACTION_ALLOW',
  })
  const ended = await service.ended(operation.operation_id)
  expect(ended.result).toMatchObject({
    state: 'active',
    source_ports: [],
    sources: [{ cidr: '203.0.113.0/24', resource_id: '' }],
  })
  expect(await service.simulator().wouldPass(vm_id, packet)).toBe(true)
  const test = await service.ok('firewallRuleTest', {
    body: {
      direction: 'ingress',
      protocol: 'tcp',
      source: '203.0.113.7',
      destination: vm_id,
      destination_port: 8888,
    },
  })
  expect(test).toEqual({ allowed: true, rule_id: ended.metadata.id })
  const gone = await service.ok('firewallRuleDelete', { params: { rule_id: ended.metadata.id } })
  await service.ended(gone.operation.operation_id)
  expect(await service.simulator().wouldPass(vm_id, packet)).toBe(false)
  await remove(vm_id)
})
