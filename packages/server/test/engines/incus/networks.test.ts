import { eventually } from '@slipway/testing/eventually.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { bridgeOf } from '../../../src/engines/incus/networks.ts'
import { ConformanceBench } from '../../support/conformance-bench.ts'
import type { ReceivedRequest } from '../../support/incus/stand-in.ts'
import { incus, member, open, signal, useStandIn } from '../../support/incus/stand-in-bench.ts'

useStandIn()

/** Responds to the requests to a path. Returns the largest number of concurrent ones, which it keeps up to date. */
function countConcurrent(path: string): { most: number } {
  const counted = { most: 0 }
  let concurrent = 0
  incus.recorded.set(path, async () => {
    counted.most = Math.max(counted.most, ++concurrent)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    concurrent--
    return {}
  })
  return counted
}

test('a bridge is defined on several members at a time, with a VXLAN number that no other bridge has', async () => {
  const names = Array.from({ length: 40 }, (_, index) => `m${index}`)
  incus.recorded.set(
    '/1.0/cluster/members',
    names.map((name) => member(name)),
  )
  const image = { name: 'guest:latest', source: { fingerprint: '5e'.repeat(32) } }
  const subject = { engine: await open(), host: 'm1', image, close: async () => {} }
  const { engine, spec, next, wanted } = await ConformanceBench.open(subject)
  const taken = 1 + (Number.parseInt(bridgeOf(spec.network).slice(2, 8), 16) % 0xfffffe)
  incus.recorded.set('/1.0/networks', [{ name: 'sw1', config: { 'tunnel.v.id': String(taken) } }])
  incus.recorded.set('POST /1.0/network-acls', {})
  const counted = countConcurrent('POST /1.0/networks')
  // The stand-in has no images, so the creation of the VM fails after the network has been created.
  await expect(engine.ensureVm(spec, wanted('off'), next())).rejects.toThrow()
  const posts = incus.asked.filter(({ method, path }) => method === 'POST' && path === '/1.0/networks')
  expect(posts.map(({ query }) => query.get('target'))).toEqual([...names, null])
  expect(counted.most).toBe(16)
  expect(posts.at(-1)!.body).toMatchObject({ config: { 'tunnel.v.id': String(taken + 1) } })
})

/** Records a running VM on the bridge sw1 of the member m1. */
function recordVm(id: string, publicAddress = ''): void {
  const config = {
    ...{ 'user.slipway.id': id, 'user.slipway.bridge': 'sw1', 'user.slipway.goal': 'on' },
    'user.slipway.public-address': publicAddress,
  }
  const devices = { eth0: { 'ipv4.address': '172.27.0.10' } }
  const instance = {
    ...{ name: `vm-${id}`, location: 'm1', status: 'Running', last_used_at: '2026-01-01T00:00:00Z' },
    ...{ profiles: [], config, devices },
  }
  incus.recorded.set(`/1.0/instances/vm-${id}`, instance)
  incus.recorded.set(`PUT /1.0/instances/vm-${id}`, ({ body }: ReceivedRequest) => {
    incus.recorded.set(`/1.0/instances/vm-${id}`, { ...instance, ...(body as object) })
    return {}
  })
}

test('forwards of one bridge on one member are written in turn, because Incus loses some that are written concurrently', async () => {
  const vms = ['a', 'b', 'c', 'd']
  for (const id of vms) recordVm(id)
  const counted = countConcurrent('POST /1.0/networks/sw1/forwards')
  const engine = await open()
  await Promise.all(
    vms.map((id, index) =>
      engine.setPublicAddress({ id, host: 'm1' }, `203.0.113.${index}`, { generation: 1, signal }),
    ),
  )
  expect(counted.most).toBe(1)
  expect(incus.asked.filter(({ path }) => path.endsWith('/forwards'))).toHaveLength(4)
})

test('the forward of a guest that does not respond is written again, because Incus may have lost it', async () => {
  recordVm('a', '203.0.113.7')
  incus.recorded.set('PUT /1.0/instances/vm-a/state', {})
  const forward = '/1.0/networks/sw1/forwards/203.0.113.7'
  incus.recorded.set(`PUT ${forward}`, {})
  let isAnswering = false
  const probed = vi.fn(async () => isAnswering)
  const engine = await open({}, { answersSsh: probed })
  await engine.powerVm({ id: 'a', host: 'm1' }, 'reset', { generation: 1, signal })
  await eventually(() => probed.mock.calls.length > 0)
  const rewrites = () => incus.asked.filter(({ path }) => path === forward)
  expect(rewrites()).toEqual([])
  // The guest has not responded for a while.
  const realNow = performance.now.bind(performance)
  const now = vi.spyOn(performance, 'now').mockImplementation(() => realNow() + 15_000)
  onTestFinished(() => now.mockRestore())
  await eventually(() => rewrites().length > 0)
  expect(rewrites()).toMatchObject([
    { method: 'PUT', body: { config: { target_address: '172.27.0.10', 'user.slipway.id': 'a' } } },
  ])
  const seen = new Promise((resolve) => engine.watch(resolve))
  isAnswering = true
  expect(await seen).toBe('a')
})
