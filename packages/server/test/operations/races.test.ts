import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { freshName, resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { type ApiResponse, startService, type TestService } from '@slipway/testing/service.ts'
import { countOf } from '@slipway/testing/setup/counts.ts'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { SimulatedEngine } from '../../src/engines/simulated/engine.ts'
import { reconcileVm } from '../../src/reconcile/vm-states.ts'
import type { Server } from '../../src/server.ts'
import { holdCalls } from '../support/held-calls.ts'

let service: TestService
let resources: ReturnType<typeof resourcesOf>
const others: Server[] = []

beforeAll(async () => {
  // One small host of each kind and a pool of six public addresses, so that the last one is soon reached.
  service = await startService((config) => {
    config.locations = config.locations.slice(0, 1)
    const [location] = config.locations
    location!.publicIpv4 = '198.18.0.0/29'
    if (location!.engine === 'simulated')
      location!.simulated.hosts = [
        { count: 1, model: 'A100 40GB PCIe', gpus: 1 },
        { count: 4, model: 'A40 48GB PCIe', gpus: 8 },
      ]
  })
  resources = resourcesOf(service)
  others.push(await service.another())
  return () => service.close()
})

afterEach(async () => {
  await resources.clear()
  await settle(service)
  await checkInvariants(service)
})

/** Sends all requests at the same time. `post` alternates between the two server processes. */
const atOnce = <T>(times: number, request: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: times }, (_, index) => request(index)))

const post = async (index: number, path: string, body: unknown): Promise<ApiResponse<{ code?: string }>> => {
  const base = index % 2 === 0 ? service.url : others[0]!.url
  const response = await fetch(`${base}/v0.1/projects/${service.credentials.project_id}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.credentials.access_key}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as object }
}
const codes = (answers: ApiResponse<{ code?: string }>[]) =>
  answers.map(({ body }) => body.code ?? 'ok').sort()
const untilIdle = () =>
  eventually(async () => {
    const [row] = await service.sql<{ count: number }>(
      `SELECT count(*)::int AS count FROM operations WHERE state = 'IN_PROGRESS'`,
    )
    return row!.count === 0
  })

test('concurrent requests for the last GPU: exactly one succeeds, every time', {
  timeout: 240_000,
}, async () => {
  for (let round = 0; round < countOf('requestRaces'); round++) {
    const answers = await atOnce(2, (index) => post(index, '/vms', vmBody({ public_ip: 'none' })))
    expect(codes(answers)).toEqual(['ok', 'out_of_stock'])
    const { items } = await service.ok('vmList')
    await resources.succeeded(await resources.removeVm(items[0]!.id))
    await eventually(async () => {
      await service.server.reconciler.reports()
      return (await service.ok('availabilityList', { query: { product_name: 'a100.1x' } })).items[0]!
        .available
    })
  }
})

test('concurrent requests for the last public addresses: as many succeed as there are addresses', async () => {
  const answers = await atOnce(10, (index) => post(index, '/vms', vmBody({ type: 'a40.1x' })))
  expect(codes(answers)).toEqual([...Array(6).fill('ok'), ...Array(4).fill('out_of_stock')])
  await untilIdle()
  const { items } = await service.ok('vmList')
  const addresses = items.map((vm) => vm.network_interfaces[0]!.ips[0]!.public_ipv4.address)
  expect(new Set(addresses).size).toBe(6)
})

test('concurrent requests for the last private addresses of a subnet: as many succeed as there are addresses', async () => {
  const network = await service.ok('networkCreate', {
    body: { name: freshName('net'), cidr: '10.77.0.0/24' },
  })
  const subnet = await service.ok('subnetCreate', {
    body: {
      name: freshName('sub'),
      cidr: '10.77.0.0/28',
      vpc_network_id: network.id,
      location: 'us-east1-a',
    },
  })
  const body = () => vmBody({ type: 'a40.1x', public_ip: 'none', subnet_id: subnet.id })
  const answers = await atOnce(14, (index) => post(index, '/vms', body()))
  expect(codes(answers)).toEqual([...Array(10).fill('ok'), ...Array(4).fill('out_of_stock')])
  await untilIdle()
})

test('concurrent requests for one name: exactly one succeeds', async () => {
  for (const path of ['/vms', '/disks'] as const) {
    const name = freshName('same')
    const body =
      path === '/vms'
        ? () => vmBody({ name, type: 'a40.1x', public_ip: 'none' })
        : () => ({ name, size: '1GiB', location: 'us-east1-a' })
    const answers = await atOnce(6, (index) => post(index, path, body()))
    expect(codes(answers)).toEqual([...Array(5).fill('already_exists'), 'ok'])
  }
  await untilIdle()
})

test('concurrent requests for the rest of a quota: as many succeed as the quota allows', async () => {
  const { project_id } = service.credentials
  const token = service.credentials.operator_key
  const quota = (max: number) =>
    service.ok('adminQuotaSet', { token, body: { project_id, items: [{ name: 'a40_gpus', max }] } })
  await quota(5)
  const answers = await atOnce(8, (index) =>
    post(index, '/vms', vmBody({ type: 'a40.2x', public_ip: 'none' })),
  )
  expect(codes(answers)).toEqual(['ok', 'ok', ...Array(6).fill('quota_exceeded')])
  await untilIdle()
  await quota(1000)
})

test('concurrent attachments of one disk to two VMs: exactly one succeeds', async () => {
  const vms = [
    await resources.newVm({ type: 'a40.1x', public_ip: 'none' }),
    await resources.newVm({ type: 'a40.1x', public_ip: 'none' }),
  ]
  for (let round = 0; round < 10; round++) {
    const disk_id = await resources.newDisk()
    const attach_disks = [{ disk_id, attachment_type: 'data', mode: 'read-write' }]
    const answers = await atOnce(2, (index) =>
      post(index, `/vms/${vms[index]}/attach-disks`, { attach_disks }),
    )
    expect(codes(answers)).toEqual(['conflict', 'ok'])
    await untilIdle()
  }
})

test('twenty concurrent deletions of one VM return the same operation', async () => {
  const id = await resources.newVm({ type: 'a40.1x', public_ip: 'none' })
  // The deletion cannot end before the last request has arrived, in either process, because an engine applies new
  // faults immediately.
  for (const { services } of [service.server, others[0]!])
    await (services.engines.get('us-east1-a') as SimulatedEngine).addFault({
      method: 'removeVm',
      kind: 'fail',
      times: 1000,
    })
  const answers = await atOnce(20, () => resources.removeVm(id))
  await service.simulator().clearFaults()
  expect(new Set(answers.map(({ operation }) => operation.operation_id)).size).toBe(1)
  await untilIdle()
})

test('concurrent changes of firewall rules all take effect', async () => {
  await resources.newVm({ type: 'a40.1x', public_ip: 'none' })
  const rules = await Promise.all([resources.newRule(), resources.newRule(), resources.newRule()])
  const accepted = await Promise.all([
    ...rules.map((id, index) => resources.changeRule(id, { destination_ports: [String(9000 + index)] })),
    resources.createRule(),
    resources.createVm({ type: 'a40.1x', public_ip: 'none' }),
  ])
  for (const one of accepted) await resources.succeeded(one)
  await Promise.all(rules.map(async (id) => resources.succeeded(await resources.removeRule(id))))
})

test('a report that an engine made during an operation has no effect on the VM afterwards', async () => {
  const id = await resources.newVm({ type: 'a40.1x' })
  await resources.succeeded(await resources.act(id, { action: 'STOP' }))
  const start = holdCalls(service.simulator(), 'ensureVm', id)
  const inspection = holdCalls(service.simulator(), 'inspectVm', id, 'end')
  const accepted = await resources.act(id, { action: 'START' })
  await start.called
  const reconciliation = reconcileVm(service.server.services, id, AbortSignal.timeout(60_000))
  await Promise.race([reconciliation, inspection.called])
  start.release()
  await resources.succeeded(accepted)
  inspection.release()
  await reconciliation
  expect(await resources.stateOf(id)).toBe('STATE_RUNNING')
})

describe('a deletion', () => {
  // There is one worker, which the faults below block.
  beforeAll(() => others[0]!.close())

  const small = { type: 'a40.1x', public_ip: 'none' }
  type Held = Parameters<typeof holdCalls>[1]
  const cases: [string, Held, () => Promise<() => ReturnType<typeof resources.createVm>>][] = [
    ['being created', 'ensureVm', async () => () => resources.createVm(small)],
    [
      'being stopped',
      'powerVm',
      async () => {
        const id = await resources.newVm(small)
        return () => resources.act(id, { action: 'STOP' })
      },
    ],
    [
      'being started',
      'ensureVm',
      async () => {
        const id = await resources.newVm(small)
        await resources.succeeded(await resources.act(id, { action: 'STOP' }))
        return () => resources.act(id, { action: 'START' })
      },
    ],
    [
      'getting a disk',
      'attachDisk',
      async () => {
        const [vm, disk] = [await resources.newVm(small), await resources.newDisk()]
        return () => resources.attach(vm, disk)
      },
    ],
  ]

  test.each(cases)('of a VM %s cancels that operation and leaves nothing', async (_, method, prepare) => {
    const begin = await prepare()
    const { called, release } = holdCalls(service.simulator(), method)
    const { operation } = await begin()
    await called
    const deletion = await resources.removeVm(operation.metadata.id)
    release()
    expect(await resources.ended(deletion)).toMatchObject({ state: 'SUCCEEDED', result: null })
    expect(await service.ended(operation.operation_id)).toMatchObject({
      state: 'FAILED',
      result: { code: 'cancelled' },
    })
    expect((await service.call('vmGet', { params: { vm_id: operation.metadata.id } })).status).toBe(404)
  })

  test('of a VM whose failed creation is being undone takes over from the undo', async () => {
    await service.simulator().addFault({ method: 'ensureVm', kind: 'reject' })
    // The undo lasts until the test ends it.
    await service.simulator().addFault({ method: 'removeVm', kind: 'fail', times: 1000 })
    const { operation } = await resources.createVm(small)
    await eventually(async () => {
      const [row] = await service.sql('SELECT FROM operations WHERE id = $1 AND is_undoing', [
        operation.operation_id,
      ])
      return row
    })
    const deletion = await resources.removeVm(operation.metadata.id)
    await service.simulator().clearFaults()
    await resources.succeeded(deletion)
    expect((await service.ended(operation.operation_id)).state).toBe('FAILED')
    expect((await service.call('vmGet', { params: { vm_id: operation.metadata.id } })).status).toBe(404)
  })

  test('of a growing disk returns exactly the quota it had', async () => {
    const disk = await resources.newDisk()
    const { called, release } = holdCalls(service.simulator(), 'growDisk')
    await resources.grow(disk, '50GiB')
    await called
    const deletion = await resources.removeDisk(disk)
    release()
    await resources.succeeded(deletion)
  })
})
