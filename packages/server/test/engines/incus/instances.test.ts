import { expect, test } from 'vitest'
import { bridgeOf } from '../../../src/engines/incus/networks.ts'
import { ConformanceBench } from '../../support/conformance-bench.ts'
import type { ReceivedRequest } from '../../support/incus/stand-in.ts'
import { incus, member, open, signal, useStandIn } from '../../support/incus/stand-in-bench.ts'

useStandIn()

const fingerprint = '5e'.repeat(32)

test('a disk is detached regardless of the name of its device', async () => {
  const disk = { type: 'disk', pool: 'default', source: 'disk-d' }
  const kept = { root: { type: 'disk', path: '/', pool: 'default' } }
  const instance = { status: 'Running', config: {}, devices: { ...kept, 'disk-d': disk } }
  incus.recorded.set('/1.0/instances/vm-a', instance)
  incus.recorded.set('PUT /1.0/instances/vm-a', {})
  const opened = await open()
  await opened.detachDisk({ id: 'a', host: 'm1' }, { id: 'd', host: 'm1' }, { generation: 1, signal })
  const [written] = incus.asked.filter(({ method }) => method === 'PUT')
  expect(written!.body).toMatchObject({ config: { 'user.slipway.generation': '1' } })
  expect((written!.body as typeof instance).devices).toEqual(kept)
})

test('new disks are in the pool of their type, and a disk is found in whichever pool it is', async () => {
  const pools = { persistent: 'fast', shared: 'wide' }
  const volumes = (pool: string) => `/1.0/storage-pools/${pool}/volumes/custom`
  incus.recorded.set('/1.0', { config: {}, environment: { server_clustered: false, server_name: 'm1' } })
  for (const pool of Object.values(pools)) {
    incus.recorded.set(`POST ${volumes(pool)}`, ({ body }: ReceivedRequest) => {
      incus.recorded.set(`${volumes(pool)}/${(body as { name: string }).name}`, body)
      return {}
    })
  }
  incus.recorded.set('POST /1.0/profiles', {})
  const opened = await open({ disk_pool: pools.persistent, shared_volume_pool: pools.shared })
  const call = { generation: 1, signal }
  const disk = { host: 'm1', sizeGib: 1, blockSize: 512, serialNumber: 's' }
  await opened.ensureDisk({ ...disk, id: 'd', type: 'persistent-ssd' }, call)
  await opened.ensureDisk({ ...disk, id: 'v', type: 'shared-volume' }, call)
  // This disk was created before the setting existed.
  incus.recorded.set(`${volumes('default')}/disk-old`, { config: { 'user.slipway.id': 'old' } })
  const removed = ['d', 'v', 'old'].map((id) =>
    opened.removeDisk({ id, host: 'm1' }, { generation: 2, signal }),
  )
  await Promise.allSettled(removed)
  const paths = incus.asked.flatMap(({ method, path }) => (method === 'DELETE' ? [path] : []))
  expect(paths.toSorted()).toEqual([
    `${volumes('default')}/disk-old`,
    `${volumes('fast')}/disk-d`,
    `${volumes('wide')}/disk-v`,
  ])
})

test('a VPC network whose range another network of the location uses is refused, with advice', async () => {
  incus.recorded.set('/1.0/networks', [
    { name: 'incusbr0', config: { 'ipv4.address': '10.0.0.1/24' } },
    { name: 'sw0123456789a', config: { 'ipv4.address': '172.27.0.1/20', 'user.slipway.network': 'other' } },
    { name: 'eth0', config: {} },
  ])
  const image = { name: 'guest:latest', source: {} }
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const subject = { engine: await open(), host: 'm1', image, close: async () => {} }
  const { engine: opened, spec, next, wanted } = await ConformanceBench.open(subject)
  await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({
    kind: 'rejected',
    message: expect.stringMatching(
      /172\.27\.0\.0\/20 overlaps with the network sw0123456789a .* another range/,
    ),
  })
  expect(incus.asked.filter(({ method }) => method === 'POST')).toEqual([])
})

test('the range of an unused network is free once the network is removed', async () => {
  const left = {
    ...{ name: 'sw0123456789a', used_by: ['/1.0/network-acls/sw0123456789a'] },
    config: { 'ipv4.address': '172.27.0.1/20', 'user.slipway.network': 'other' },
  }
  incus.recorded.set('/1.0/networks', [left])
  incus.recorded.set('/1.0/networks/sw0123456789a', left)
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const image = { name: 'guest:latest', source: {} }
  const subject = { engine: await open(), host: 'm1', image, close: async () => {} }
  const { engine: opened, spec, next, wanted } = await ConformanceBench.open(subject)
  // Incus does not remove the network, as happens while a member is unavailable.
  await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({
    ...{ kind: 'unavailable', message: expect.stringContaining('not been removed yet') },
  })
  incus.recorded.set('DELETE /1.0/networks/sw0123456789a', () => {
    incus.recorded.set('/1.0/networks', [])
    return {}
  })
  incus.recorded.set('POST /1.0/networks', {})
  await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({ name: 'EngineError' })
  const creations = incus.asked.filter(({ method, path }) => method === 'POST' && path === '/1.0/networks')
  expect(creations.at(-1)!.body).toMatchObject({ name: bridgeOf(spec.network) })
})

test('a creation that Incus accepted but could not finish is retried', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const image = { name: 'guest:latest', source: { fingerprint } }
  const subject = {
    engine: await open({ profiles: ['large-pages'] }),
    host: 'm1',
    image,
    close: async () => {},
  }
  const { engine: opened, spec, next, wanted } = await ConformanceBench.open(subject)
  incus.recorded.set(`/1.0/networks/${bridgeOf(spec.network)}`, {})
  incus.recorded.set(`/1.0/images/${fingerprint}`, {})
  incus.recorded.set('POST /1.0/instances', { operation: '/1.0/operations/1?project=slipway' })
  incus.recorded.set('/1.0/operations/1/wait', { status_code: 400, err: 'the member went away' })
  await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({
    ...{ kind: 'unavailable', message: 'Incus: the member went away' },
  })
  const [asked] = incus.asked.filter(({ method }) => method === 'POST')
  expect(asked!.query.get('target')).toBe('m1')
  expect(asked!.body).toMatchObject({ source: { type: 'image', fingerprint }, profiles: ['large-pages'] })
})

/** Creates a VM that Incus has created but not started. */
async function stoppedVm() {
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const image = { name: 'guest:latest', source: { fingerprint } }
  const subject = { engine: await open(), host: 'm1', image, close: async () => {} }
  const bench = await ConformanceBench.open(subject)
  const { spec } = bench
  const bridge = bridgeOf(spec.network)
  const path = `/1.0/instances/vm-${spec.id}`
  incus.recorded.set(`/1.0/networks/${bridge}`, {})
  incus.recorded.set(`POST /1.0/networks/${bridge}/forwards`, {})
  const acl = `/1.0/network-acls/${bridge}`
  incus.recorded.set(acl, { config: {}, ingress: [], egress: [] })
  incus.recorded.set(`PUT ${acl}`, ({ body }: ReceivedRequest) => incus.recorded.set(acl, body) && {})
  incus.recorded.set(path, {
    ...{ status: 'Stopped', location: 'm1', profiles: [], devices: {} },
    config: { 'user.slipway.bridge': bridge },
  })
  incus.recorded.set(`PUT ${path}`, {})
  return { bench, path }
}

test('a VM that Incus removes before its start, after a creation that did not finish, is created again', async () => {
  const { bench, path } = await stoppedVm()
  const { engine: opened, spec, next, wanted } = bench
  incus.recorded.set(`PUT ${path}/state`, () => {
    incus.recorded.delete(path)
    return undefined
  })
  const call = next()
  await expect(opened.ensureVm(spec, wanted('on'), call)).rejects.toMatchObject({
    ...{ kind: 'unavailable', message: expect.stringContaining('was removed during its creation') },
  })
  expect(incus.asked.filter((asked) => asked.path === `${path}/state`)).toHaveLength(1)
  await expect(opened.powerVm(spec, 'reset', call)).rejects.toMatchObject({ kind: 'missing' })
})

test('a start on a kernel that cannot limit the network is refused immediately, with advice', async () => {
  const { bench, path } = await stoppedVm()
  const { engine: opened, spec, next, wanted } = bench
  incus.recorded.set(`PUT ${path}/state`, { operation: '/1.0/operations/1?project=slipway' })
  const err = 'Failed to start device "eth0": Failed to create ingress tc filter: exit status 2'
  incus.recorded.set('/1.0/operations/1/wait', { status_code: 400, err })
  await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({
    kind: 'rejected',
    message: expect.stringMatching(/^m1 cannot limit the bandwidth of VMs: load .* network_limits = false/),
  })
})

test.each([{}, { alias: 'guest:latest' }, { fingerprint: 'ab' }, { fingerprint: ['a'] }])(
  'a VM is not created from an image without its complete fingerprint: %j',
  async (source) => {
    incus.recorded.set('/1.0/cluster/members', [member('m1')])
    const image = { name: 'guest:latest', source }
    const subject = { engine: await open(), host: 'm1', image, close: async () => {} }
    const { engine: opened, spec, next, wanted } = await ConformanceBench.open(subject)
    incus.recorded.set(`/1.0/networks/${bridgeOf(spec.network)}`, {})
    await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({ kind: 'rejected' })
    expect(incus.asked.filter(({ method }) => method === 'POST')).toEqual([])
  },
)
