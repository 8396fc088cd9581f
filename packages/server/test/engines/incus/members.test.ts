import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { HostReport } from '../../../src/engines/engine.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { createIncusEngine } from '../../../src/engines/incus/index.ts'
import { bridgeOf } from '../../../src/engines/incus/networks.ts'
import { ConformanceBench } from '../../support/conformance-bench.ts'
import { IncusStandIn, type ReceivedRequest } from '../../support/incus/stand-in.ts'
import { incusConfig } from '../../support/incus-bench.ts'

const signal = AbortSignal.timeout(600_000)
const fingerprint = '5e'.repeat(32)

let dir: string
let incus: IncusStandIn
let engine: IncusEngine | undefined
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'swi-'))
  incus = await new IncusStandIn().open(join(dir, 'socket'))
  incus.recorded.set('/1.0/projects/slipway', {})
  incus.recorded.set('/1.0/resources', resourcesOf('a100-80gb-8x-two-nodes'))
  for (const path of ['/1.0/instances', '/1.0/network-acls', '/1.0/storage-pools/default/volumes/custom'])
    incus.recorded.set(path, [])
})
afterEach(async () => {
  await engine?.close()
  await incus.close()
  await rm(dir, { recursive: true })
})

async function open(changes: Record<string, unknown> = {}): Promise<IncusEngine> {
  const config = incusConfig({
    ...{ socket: join(dir, 'socket'), instance_type: 'virtual-machine', ...changes },
  })
  engine = await createIncusEngine({ config })
  return engine
}

const member = (server_name: string, status = 'Online', config = {}) => ({
  ...{ server_name, status, message: '', config, roles: [] },
})

/** What Incus makes of a recorded sysfs tree. */
function resourcesOf(name: string) {
  const path = join(import.meta.dirname, '../../support/fixtures/sysfs', `${name}.json`)
  const { pci } = JSON.parse(readFileSync(path, 'utf8')) as {
    pci: Record<string, { files: Record<string, string>; links: Record<string, string> }>
  }
  const devices = Object.entries(pci).map(([pci_address, { files, links }]) => ({
    pci_address,
    vendor_id: files.vendor!.trim().slice(2),
    product_id: files.device!.trim().slice(2),
    numa_node: Math.max(0, Number(files.numa_node)),
    iommu_group: links.iommu_group ? Number(links.iommu_group.split('/').at(-1)) : 0,
    isDisplay: /^0x03/.test(files.class!),
  }))
  return {
    ...{ cpu: { total: 256 }, memory: { total: 2048 * 1024 ** 3 } },
    gpu: { cards: devices.filter(({ isDisplay }) => isDisplay) },
    pci: { devices },
  }
}

async function inventory(from: IncusEngine): Promise<HostReport[]> {
  const found: HostReport[] = []
  for await (const report of from.inventory(signal)) found.push(report)
  return found
}

test('the GPUs of a member are known by their PCI ids, with NUMA node and IOMMU group', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('a100'), member('h200')])
  incus.recorded.set('/1.0/resources', ({ query }: ReceivedRequest) =>
    resourcesOf(query.get('target') === 'a100' ? 'a100-80gb-8x-two-nodes' : 'h200-in-a-guest'),
  )
  const reports = new Map((await inventory(await open())).map((report) => [report.name, report]))
  const { gpus } = reports.get('a100')!
  expect(gpus.map(({ model }) => model)).toEqual(Array(8).fill('A100 80GB PCIe'))
  expect(gpus.map(({ numaNode }) => numaNode).sort()).toEqual([0, 0, 0, 0, 1, 1, 1, 1])
  expect(new Set(gpus.map(({ iommuGroup }) => iommuGroup)).size).toBe(8)
  expect(reports.get('h200')!.gpus).toMatchObject([{ model: 'PCI 10de:2335', pciAddress: '0000:00:06.0' }])
})

test('a member is away when Incus has given it up, and closed when it is evacuated or filters nothing', async () => {
  const filters = { 'user.slipway.filters-internal': 'true' }
  incus.recorded.set('/1.0/cluster/members', [
    ...[member('open', 'Online', filters), member('offline', 'Offline', filters)],
    ...[member('evacuated', 'Evacuated', filters), member('unfiltered')],
  ])
  incus.recorded.set('/1.0/resources', ({ query }: ReceivedRequest) =>
    query.get('target') === 'offline' ? undefined : resourcesOf('a100-80gb-8x-two-nodes'),
  )
  const seen = async (from: IncusEngine) =>
    Object.fromEntries(
      (await inventory(from)).map(({ name, isUnreachable, isClosed, gpus }) => [
        name,
        isUnreachable ? 'away' : `${isClosed ? 'closed' : 'open'} with ${gpus.length}`,
      ]),
    )
  expect(await seen(await open({ allow_unfiltered_internal: false }))).toEqual({
    ...{ open: 'open with 8', offline: 'away', evacuated: 'closed with 8', unfiltered: 'closed with 8' },
  })
  await engine!.close()
  expect(await seen(await open())).toMatchObject({ unfiltered: 'open with 8', evacuated: 'closed with 8' })
})

test('500 members with 4,000 VMs are read a few at a time, and one that hangs delays only itself', async () => {
  const names = Array.from({ length: 500 }, (_, index) => `m${index}`)
  incus.recorded.set(
    '/1.0/cluster/members',
    names.map((name) => member(name)),
  )
  const instance = (_: unknown, index: number) => ({
    ...{ name: `vm-${index}`, location: names[index % 500], status: 'Running', last_used_at: '' },
    config: { 'user.slipway.id': String(index), 'user.slipway.goal': 'on', 'user.slipway.generation': '3' },
    devices: {},
  })
  incus.recorded.set('/1.0/instances', Array.from({ length: 4000 }, instance))
  const hardware = resourcesOf('a100-80gb-8x-two-nodes')
  let [underWay, most] = [0, 0]
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  incus.recorded.set('/1.0/resources', async ({ query }: ReceivedRequest) => {
    most = Math.max(most, ++underWay)
    await (query.get('target') === 'm7' ? released : new Promise(setImmediate))
    underWay--
    return hardware
  })
  const found = new Map<string, HostReport>()
  for await (const report of (await open()).inventory(signal)) {
    found.set(report.name, report)
    if (found.size !== 50) continue
    // More than are asked at once, three times over, have reported while it still hangs; soon it would be given up.
    expect(found.has('m7')).toBe(false)
    release()
  }
  expect(found.size).toBe(500)
  expect([...found.values()].every(({ vms }) => vms.length === 8)).toBe(true)
  expect(found.get('m7')!.vms[0]).toMatchObject({ power: 'running', generation: 3 })
  expect(most).toBeLessThanOrEqual(16)
  expect(incus.asked.filter(({ path }) => path === '/1.0/instances')).toHaveLength(1)
})

test('a member that Incus calls offline for want of a leader, but that answers itself, is not away', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2', 'Offline')])
  const reports = await inventory(await open())
  expect(reports.map(({ name, isUnreachable }) => [name, isUnreachable])).toEqual([
    ...[
      ['m1', undefined],
      ['m2', undefined],
    ],
  ])
})

test('while nothing changes, an inventory reads the members alone, and an event causes a full one', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2')])
  const opened = await open()
  await eventually(() => incus.listenerCount === 1)
  const brief = async () => {
    incus.asked.splice(0)
    const reports: HostReport[] = []
    for await (const report of opened.inventory(signal, undefined, true)) reports.push(report)
    return { isBrief: reports.every(({ isSummary }) => isSummary), count: incus.asked.length }
  }
  expect(await brief()).toMatchObject({ isBrief: false })
  expect(await brief()).toEqual({ isBrief: true, count: 1 })
  incus.tell({ type: 'lifecycle', metadata: { source: '/1.0/instances/vm-three?project=slipway' } })
  await eventually(async () => !(await brief()).isBrief)
  expect(await brief()).toEqual({ isBrief: true, count: 1 })
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2', 'Evacuated')])
  expect(await brief()).toMatchObject({ isBrief: false })
})

test('members report while Incus cannot list instances, as when one of them hangs', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2')])
  incus.recorded.set('/1.0/instances', () => undefined)
  const reports = await inventory(await open())
  expect(reports.map(({ name, isSummary }) => [name, isSummary])).toEqual([
    ...[
      ['m1', true],
      ['m2', true],
    ],
  ])
})

test('a GPU is not free while its VM is in Error: its QEMU may still have it', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const [pciAddress] = resourcesOf('a100-80gb-8x-two-nodes').gpu.cards.map((card) => card.pci_address)
  const config = { 'user.slipway.id': 'a', 'user.slipway.goal': 'on', 'user.slipway.gpus': pciAddress }
  const instance = { name: 'vm-a', location: 'm1', last_used_at: '', config, devices: {} }
  incus.recorded.set('/1.0/instances', [{ ...instance, status: 'Error' }])
  const [{ gpus, vms } = expect.fail('no report')] = await inventory(await open())
  expect(gpus.find((gpu) => gpu.pciAddress === pciAddress)).toMatchObject({ holderVmId: 'a', isClean: false })
  expect(vms).toEqual([])
})

test('what Incus says instead of a console log is not taken for one', async () => {
  incus.recorded.set('/1.0/instances/vm-a', { name: 'vm-a', status: 'Running', config: {}, devices: {} })
  const read = (await open()).serialLog({ id: 'a', host: 'm1' }, undefined, signal)
  await expect(read).rejects.toMatchObject({ kind: 'unavailable', message: 'Incus: not found' })
})

test('each start of a VM has offsets of its own in its serial log, and nothing is missed', async () => {
  const vm = { id: 'a', host: 'm1' }
  const said = (text: string, restarts: string) => {
    const config = { 'user.slipway.id': 'a', 'user.slipway.restarts': restarts }
    incus.recorded.set('/1.0/instances/vm-a', { name: 'vm-a', status: 'Running', config, devices: {} })
    incus.recorded.set('/1.0/instances/vm-a/console', text)
  }
  const opened = await open()
  said('the first start', '0')
  const first = await opened.serialLog(vm, 0, signal)
  expect(first.nextOffset).toBe(first.content.length)
  said('the second', '1')
  const second = await opened.serialLog(vm, first.nextOffset, signal)
  expect(second.content).toContain('the second')
  expect(second.nextOffset).toBeGreaterThan(first.nextOffset)
  expect(await opened.serialLog(vm, second.nextOffset, signal)).toEqual({ ...second, content: '' })
  // A guest that starts anew by itself has a new log, too.
  said('again', '1')
  expect((await opened.serialLog(vm, second.nextOffset, signal)).content).toContain('again')
})

test('a disk is detached whatever its device is called', async () => {
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

test('a VPC whose range another network of the location has is refused, with what to do', async () => {
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

test('a range that a network has which nobody uses any more is free once the network is removed', async () => {
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
  // Incus keeps it, as it does while a member is unavailable.
  await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({
    ...{ kind: 'unavailable', message: expect.stringContaining('not removed yet') },
  })
  incus.recorded.set('DELETE /1.0/networks/sw0123456789a', () => {
    incus.recorded.set('/1.0/networks', [])
    return {}
  })
  incus.recorded.set('POST /1.0/networks', {})
  await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({ name: 'EngineError' })
  const made = incus.asked.filter(({ method, path }) => method === 'POST' && path === '/1.0/networks')
  expect(made.at(-1)!.body).toMatchObject({ name: bridgeOf(spec.network) })
})

test('a creation that Incus took on and could not end is tried again', async () => {
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
  incus.recorded.set('POST /1.0/instances', { operation: '/1.0/operations/1?project=slipway' })
  incus.recorded.set('/1.0/operations/1/wait', { status_code: 400, err: 'the member went away' })
  await expect(opened.ensureVm(spec, wanted('on'), next())).rejects.toMatchObject({
    ...{ kind: 'unavailable', message: 'Incus: the member went away' },
  })
  const [asked] = incus.asked.filter(({ method }) => method === 'POST')
  expect(asked!.query.get('target')).toBe('m1')
  expect(asked!.body).toMatchObject({ source: { type: 'image', fingerprint }, profiles: ['large-pages'] })
})

test('a VM that Incus removes before its start, after a creation that did not finish, is tried again', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const image = { name: 'guest:latest', source: { fingerprint } }
  const subject = { engine: await open(), host: 'm1', image, close: async () => {} }
  const { engine: opened, spec, next, wanted } = await ConformanceBench.open(subject)
  const bridge = bridgeOf(spec.network)
  const path = `/1.0/instances/vm-${spec.id}`
  incus.recorded.set(`/1.0/networks/${bridge}`, {})
  incus.recorded.set(`POST /1.0/networks/${bridge}/forwards`, {})
  const acl = `/1.0/network-acls/${bridge}`
  incus.recorded.set(acl, { config: {}, ingress: [], egress: [] })
  incus.recorded.set(`PUT ${acl}`, ({ body }: ReceivedRequest) => incus.recorded.set(acl, body) && {})
  incus.recorded.set(path, { status: 'Stopped', config: { 'user.slipway.bridge': bridge }, devices: {} })
  incus.recorded.set(`PUT ${path}`, {})
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

test.each([{}, { alias: 'guest:latest' }, { fingerprint: 'ab' }, { fingerprint: ['a'] }])(
  'a VM is made from no image that is not known by its whole fingerprint: %j',
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

test('marks of what was removed days ago go, and so do networks that nobody uses', async () => {
  const at = (daysAgo: number) => new Date(Date.now() - daysAgo * 24 * 3600_000).toISOString()
  const gone = (id: string, daysAgo: number) => ({
    ...{ name: `gone-${id}`, config: { 'user.slipway.id': id, 'user.slipway.gone-at': at(daysAgo) } },
  })
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  incus.recorded.set('/1.0/profiles', [{ name: 'default', config: {} }, gone('new', 1), gone('old', 3)])
  const networks = ['sw1', 'sw2', 'theirs'].map((name) => ({
    ...{ name, used_by: name === 'sw1' ? ['/1.0/instances/vm-1?project=slipway'] : [] },
    config: name === 'theirs' ? {} : { 'user.slipway.network': 'n' },
  }))
  incus.recorded.set('/1.0/networks', networks)
  for (const network of networks) incus.recorded.set(`/1.0/networks/${network.name}`, network)
  const opened = await open()
  await inventory(opened)
  const removed = incus.asked.flatMap(({ method, path }) => (method === 'DELETE' ? [path] : []))
  expect(removed).toEqual(['/1.0/profiles/gone-old', '/1.0/networks/sw2', '/1.0/network-acls/sw2'])
})

test('instances that were renamed, copied or stripped by hand are reported, with what to do', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const config = { 'user.slipway.id': 'a', 'user.slipway.disks': 'd1 d2' }
  const devices = { root: {}, d: { type: 'disk', source: 'disk-d1' } }
  const instance = { status: 'Running', location: 'm1', last_used_at: '', config, devices }
  incus.recorded.set('/1.0/instances', [
    { ...instance, name: 'vm-a' },
    { ...instance, name: 'copy', config: { ...config, 'user.slipway.gpus': '0000:10:00.0' } },
  ])
  const [report = expect.fail('no report')] = await inventory(await open())
  expect(report.vms.map(({ id }) => id)).toEqual(['a'])
  expect(report.capabilities.problems).toEqual([
    expect.stringMatching(/device eth0 of vm-a was removed/),
    expect.stringMatching(/disk d2 was removed from vm-a/),
    expect.stringMatching(/instance copy has the mark of VM a.*incus rename copy vm-a/),
  ])
})

test('a member whose instances Incus cannot read makes no report, so that its GPUs do not look free', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2')])
  const unread = { name: 'vm-a', location: 'm2', status: 'Error', config: null, devices: null }
  incus.recorded.set('/1.0/instances', [unread])
  expect((await inventory(await open())).map(({ name }) => name)).toEqual(['m1'])
})

test('a client that Incus does not trust is told so, and what to do', async () => {
  incus.recorded.set('/1.0', { auth: 'untrusted', config: {} })
  await expect(inventory(await open())).rejects.toThrow(
    /does not trust the client certificate: run incus config trust add-certificate/,
  )
})

test('the forward and rules of a VM whose instance was removed by hand are removed with the VM', async () => {
  const forwards = '/1.0/networks/sw1/forwards'
  incus.recorded.set('/1.0/networks', [{ name: 'sw1', config: { 'user.slipway.network': 'n' } }])
  incus.recorded.set(forwards, [
    { listen_address: '203.0.113.7', config: { 'user.slipway.id': 'a' } },
    { listen_address: '203.0.113.8', config: { 'user.slipway.id': 'b' } },
  ])
  incus.recorded.set('POST /1.0/profiles', {})
  const acl = { config: { 'user.slipway.firewall.a': '3' }, ingress: [], egress: [], description: '' }
  incus.recorded.set('/1.0/network-acls/sw1', acl)
  incus.recorded.set('PUT /1.0/network-acls/sw1', ({ body }: ReceivedRequest) => {
    incus.recorded.set('/1.0/network-acls/sw1', body)
    return {}
  })
  await (await open()).removeVm({ id: 'a', host: 'm1' }, { generation: 4, signal })
  const removed = incus.asked.flatMap(({ method, path }) => (method === 'DELETE' ? [path] : []))
  expect(removed).toEqual([`${forwards}/203.0.113.7`])
  expect(incus.recorded.get('/1.0/network-acls/sw1')).toMatchObject({ config: {} })
})
