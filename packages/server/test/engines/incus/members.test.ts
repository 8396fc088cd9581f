import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { HostReport } from '../../../src/engines/engine.ts'
import { checksOf } from '../../../src/engines/incus/agent/gpu-checks.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { scanGpus } from '../../../src/engines/sysfs-gpus.ts'
import type { ReceivedRequest } from '../../support/incus/stand-in.ts'
import { incus, member, open, resourcesOf, signal, useStandIn } from '../../support/incus/stand-in-bench.ts'
import { layOutSysfs } from '../../support/sysfs-fixture.ts'

useStandIn()

async function inventory(from: IncusEngine): Promise<HostReport[]> {
  const found: HostReport[] = []
  for await (const report of from.inventory(signal)) found.push(report)
  return found
}

test('the GPUs of a member are identified by their PCI ids, with NUMA node and IOMMU group', async () => {
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

test('the agent of a member checks its GPUs, and a GPU counts as reset only after the check that follows its last VM', async () => {
  const root = await layOutSysfs('a100-80gb-8x-two-nodes')
  const gpus = await scanGpus(root)
  const [lost, held, absent, free] = gpus.map(({ pciAddress }) => pciAddress)
  await writeFile(join(root, 'bus/pci/devices', lost!, 'config'), Buffer.alloc(64, 0xff))
  const present = (await scanGpus(root)).filter(({ pciAddress }) => pciAddress !== absent)
  const agent = {
    filtersInternal: true,
    gpuChecks: checksOf(present, [`${held} ${absent}`, '']),
    applied: {},
  }
  const report = { 'user.slipway.agent': JSON.stringify(agent) }
  incus.recorded.set('/1.0/cluster/members', [member('m1', 'Online', report)])
  const [{ gpus: reported } = expect.fail('no report')] = await inventory(await open())
  const seen = new Map(
    reported.map(({ pciAddress, check, isClean }) => [pciAddress, [check?.passed, isClean]]),
  )
  expect([lost, held, absent, free].map((address) => seen.get(address!))).toEqual([
    [false, true],
    // The VM is gone, but the agent has not noticed it yet.
    [undefined, false],
    [false, true],
    [true, true],
  ])
})

test('without an agent, a member reports GPUs as reset, but no check', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const [{ gpus } = expect.fail('no report')] = await inventory(await open())
  expect(gpus.map(({ check, isClean }) => [check, isClean])).toEqual(Array(8).fill([undefined, true]))
})

test('a member is unreachable when Incus reports it as offline, and closed when it is evacuated or does not filter traffic', async () => {
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
        isUnreachable ? 'unreachable' : `${isClosed ? 'closed' : 'open'} with ${gpus.length}`,
      ]),
    )
  const strict = await open({ allow_unfiltered_internal: false })
  expect(await seen(strict)).toEqual({
    ...{ open: 'open with 8', offline: 'unreachable' },
    ...{ evacuated: 'closed with 8', unfiltered: 'closed with 8' },
  })
  await strict.close()
  expect(await seen(await open())).toMatchObject({ unfiltered: 'open with 8', evacuated: 'closed with 8' })
})

test('a member whose kernel cannot limit the network of VMs is closed, unless the location has no limits', async () => {
  const agent = (limitsNetwork: boolean) => ({
    'user.slipway.agent': JSON.stringify({ filtersInternal: true, limitsNetwork, applied: {} }),
  })
  const mark = (isAble: boolean) => ({ 'user.slipway.limits-network': String(isAble) })
  const closed = async (members: ReturnType<typeof member>[], network_limits: boolean) => {
    incus.recorded.set('/1.0/cluster/members', members)
    const engine = await open({ network_limits })
    const reports = await inventory(engine)
    await engine.close()
    return reports.filter(({ isClosed }) => isClosed)
  }
  const marked = [
    member('able', 'Online', mark(true)),
    member('unable', 'Online', mark(false)),
    member('new'),
  ]
  const [host, ...others] = await closed(marked, true)
  expect([host?.name, others]).toEqual(['unable', []])
  expect(host?.capabilities.problems).toEqual([
    expect.stringMatching(
      /cannot limit the bandwidth of VMs: load the kernel modules .* network_limits = false/,
    ),
  ])
  expect(await closed(marked, false)).toEqual([])
  const withAgents = [
    member('able', 'Online', { ...agent(true), ...mark(false) }),
    member('unable', 'Online', agent(false)),
  ]
  expect((await closed(withAgents, true)).map(({ name }) => name)).toEqual(['unable'])
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
  let [concurrent, most] = [0, 0]
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  incus.recorded.set('/1.0/resources', async ({ query }: ReceivedRequest) => {
    most = Math.max(most, ++concurrent)
    await (query.get('target') === 'm7' ? released : new Promise(setImmediate))
    concurrent--
    return hardware
  })
  const found = new Map<string, HostReport>()
  for await (const report of (await open()).inventory(signal)) {
    found.set(report.name, report)
    if (found.size !== 50) continue
    // Three times as many members as are read concurrently have reported while m7 hangs. Release it before it
    // times out.
    expect(found.has('m7')).toBe(false)
    release()
  }
  expect(found.size).toBe(500)
  expect([...found.values()].every(({ vms }) => vms.length === 8)).toBe(true)
  expect(found.get('m7')!.vms[0]).toMatchObject({ power: 'running', generation: 3 })
  expect(most).toBeLessThanOrEqual(16)
  expect(incus.asked.filter(({ path }) => path === '/1.0/instances')).toHaveLength(1)
})

test('a member that responds itself is reachable, even if Incus shows it as offline because there is no leader', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2', 'Offline')])
  const reports = await inventory(await open())
  expect(reports.map(({ name, isUnreachable }) => [name, isUnreachable])).toEqual([
    ...[
      ['m1', undefined],
      ['m2', undefined],
    ],
  ])
})

/** The error for an unreadable cluster. The hosts of its location keep their states. */
const unreadable = { name: 'EngineError', toleranceMs: expect.any(Number) }

test('an offline member whose probe takes too long is unreachable only after the time of an election', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2', 'Offline')])
  incus.recorded.set('/1.0/resources', ({ query }: ReceivedRequest) =>
    query.get('target') === 'm2' ? new Promise(() => {}) : resourcesOf('a100-80gb-8x-two-nodes'),
  )
  const opened = await open()
  const seen = async () =>
    (await inventory(opened)).map(({ name, isUnreachable }) => (isUnreachable ? `${name} unreachable` : name))
  await expect(seen()).rejects.toMatchObject(unreadable)
  await expect(seen()).rejects.toMatchObject(unreadable)
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 20_000)
  onTestFinished(() => void vi.restoreAllMocks())
  expect(await seen()).toEqual(['m2 unreachable', 'm1'])
})

test('while most members are offline, a member whose probe takes too long is not unreachable, because no leader may be elected yet', async () => {
  const list = (status: string) => [member('m1'), member('m2', 'Offline'), member('m3', status)]
  incus.recorded.set('/1.0/cluster/members', list('Offline'))
  incus.recorded.set('/1.0/resources', ({ query }: ReceivedRequest) =>
    query.get('target') === 'm2' ? new Promise(() => {}) : resourcesOf('a100-80gb-8x-two-nodes'),
  )
  const opened = await open()
  await expect(inventory(opened)).rejects.toMatchObject(unreadable)
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 20_000)
  onTestFinished(() => void vi.restoreAllMocks())
  await expect(inventory(opened)).rejects.toMatchObject(unreadable)
  // The new leader has recorded a heartbeat of m3, but none of m2.
  incus.recorded.set('/1.0/cluster/members', list('Online'))
  const reports = await inventory(opened)
  expect(reports.filter(({ isUnreachable }) => isUnreachable).map(({ name }) => name)).toEqual(['m2'])
})

test('a cluster in which most members seem offline at the same time is unreadable, and no member counts as unreachable', async () => {
  const offline = [member('m2', 'Offline'), member('m3', 'Offline')]
  incus.recorded.set('/1.0/cluster/members', [member('m1'), ...offline])
  incus.recorded.set('/1.0/resources', ({ query }: ReceivedRequest) =>
    query.get('target') === 'm1' ? resourcesOf('a100-80gb-8x-two-nodes') : undefined,
  )
  await expect(inventory(await open())).rejects.toMatchObject({
    ...{ ...unreadable, message: expect.stringContaining('the cluster cannot be read: Incus shows') },
  })
})

test('a cluster that lists its members but not its networks is unreadable', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2')])
  incus.recorded.set('/1.0/networks', new Error('database is locked'))
  await expect(inventory(await open())).rejects.toMatchObject(unreadable)
})

test('while nothing changes, an inventory reads only the members, and an event causes a full inventory', async () => {
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

test('members report while Incus cannot list instances, for example because one member hangs', async () => {
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

test('a GPU is not free while its VM has the status Error, because its QEMU may still use it', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1')])
  const [pciAddress] = resourcesOf('a100-80gb-8x-two-nodes').gpu.cards.map((card) => card.pci_address)
  const config = { 'user.slipway.id': 'a', 'user.slipway.goal': 'on', 'user.slipway.gpus': pciAddress }
  const instance = { name: 'vm-a', location: 'm1', last_used_at: '', config, devices: {} }
  incus.recorded.set('/1.0/instances', [{ ...instance, status: 'Error' }])
  const [{ gpus, vms } = expect.fail('no report')] = await inventory(await open())
  expect(gpus.find((gpu) => gpu.pciAddress === pciAddress)).toMatchObject({ holderVmId: 'a', isClean: false })
  expect(vms).toEqual([])
})

test('an error of Incus is not returned as a console log', async () => {
  incus.recorded.set('/1.0/instances/vm-a', { name: 'vm-a', status: 'Running', config: {}, devices: {} })
  const read = (await open()).serialLog({ id: 'a', host: 'm1' }, undefined, signal)
  await expect(read).rejects.toMatchObject({ kind: 'unavailable', message: 'Incus: not found' })
})

test('each start of a VM has its own offsets in the serial log, and no output is missed', async () => {
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
  // A guest that restarts on its own has a new log, too.
  said('again', '1')
  expect((await opened.serialLog(vm, second.nextOffset, signal)).content).toContain('again')
})

test('old removal marks and unused networks are deleted', async () => {
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

test('instances that were renamed or copied, or lost devices by hand, are reported with advice', async () => {
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
    expect.stringMatching(/instance copy has the id of VM a.*incus rename copy vm-a/),
  ])
})

test('a member whose instances Incus cannot read is not reported, so that its GPUs do not look free', async () => {
  incus.recorded.set('/1.0/cluster/members', [member('m1'), member('m2')])
  const unread = { name: 'vm-a', location: 'm2', status: 'Error', config: null, devices: null }
  incus.recorded.set('/1.0/instances', [unread])
  expect((await inventory(await open())).map(({ name }) => name)).toEqual(['m1'])
})

test('a client that Incus does not trust gets an error that says so, with advice', async () => {
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

test('a cordon that Incus cannot write is an engine error, so that it is tried again', async () => {
  incus.recorded.set('/1.0/cluster/members/m1', member('m1'))
  incus.recorded.set('PATCH /1.0/cluster/members/m1', new Error('database is locked'))
  await expect((await open()).cordonHost('m1', true, signal)).rejects.toMatchObject({
    ...{ name: 'EngineError', kind: 'unavailable', message: 'Incus: database is locked' },
  })
})

test('metrics are read with one request per member, and a member that does not respond delays no other', async () => {
  const names = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6']
  incus.recorded.set('/1.0/cluster/members', [
    ...names.map((name) => member(name)),
    member('offline', 'Offline'),
  ])
  const vmAt = (name: string) => `00000000-0000-4000-8000-00000000000${name.at(-1)}`
  incus.recorded.set('/1.0/metrics', ({ query }: ReceivedRequest) => {
    const target = query.get('target')!
    if (target === 'm2') return new Promise(() => {})
    return Buffer.from(`incus_cpu_seconds_total{mode="user",name="vm-${vmAt(target)}"} 7\n`)
  })
  const seen: string[] = []
  for await (const { vmId, host, guest } of (await open()).sample(signal)) {
    expect([host, guest]).toEqual([{ slipway_vm_cpu_seconds_total: 7 }, null])
    seen.push(vmId)
    if (seen.length === names.length - 1) break
  }
  expect(seen.toSorted()).toEqual(names.filter((name) => name !== 'm2').map(vmAt))
  const requests = incus.asked.filter(({ path }) => path === '/1.0/metrics')
  expect(requests.map(({ query }) => query.get('target')).toSorted()).toEqual(names)
  expect(incus.asked.filter(({ path }) => path.endsWith('/exec'))).toEqual([])
})

test('metrics of a server without a cluster are read with one request', async () => {
  incus.recorded.set('/1.0', {
    config: {},
    environment: { server_clustered: false, server_name: 'only', server_version: '6.0.4' },
  })
  incus.recorded.set('/1.0/metrics', Buffer.from('incus_cpu_seconds_total{name="vm-a"} 1\n'))
  const seen: string[] = []
  for await (const { vmId } of (await open()).sample(signal)) seen.push(vmId)
  expect(seen).toEqual(['a'])
  const requests = incus.asked.filter(({ path }) => path === '/1.0/metrics')
  expect(requests.map(({ query }) => query.get('target'))).toEqual([null])
})
