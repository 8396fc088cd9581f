import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { CompiledRule } from '../../../src/domain/firewall.ts'
import { type GuestNetwork, guestNetworkOf } from '../../../src/engines/incus/agent/guest-network.ts'
import { localBridgeOf } from '../../../src/engines/incus/agent/local-networks.ts'
import { packetFilter } from '../../../src/engines/incus/agent/packet-filter.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { createIncusEngine } from '../../../src/engines/incus/index.ts'
import { ConformanceBench } from '../../support/conformance-bench.ts'
import { ClusterWithAgents } from '../../support/incus/agent-stand-in.ts'
import { incusConfig } from '../../support/incus/config.ts'

const image = { name: 'guest:latest', source: { alias: 'guest:latest' } }
const rule: CompiledRule = {
  ...{ ruleId: 'r', action: 'allow', direction: 'ingress', protocols: ['tcp'], peers: ['0.0.0.0/0'] },
  ...{ sourcePorts: [], destinationPorts: [[22, 22]] },
}

let dir: string
let incus: ClusterWithAgents
let engine: IncusEngine
let bench: ConformanceBench
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'swi-'))
  incus = await new ClusterWithAgents(['m1', 'm2']).open(join(dir, 'socket'))
  engine = await createIncusEngine({
    config: incusConfig({ socket: join(dir, 'socket') }),
    answersSsh: async () => true,
  })
  bench = await ConformanceBench.open({ engine, host: 'm1', image, close: async () => {} })
})
afterEach(async () => {
  await engine.close()
  await incus.close()
  await rm(dir, { recursive: true })
})

const instance = () => incus.instances.get(`vm-${bench.spec.id}`)!
const guest = () => guestNetworkOf(instance().config)!

test('on a member with an agent, creating a VM and its rules writes only to its instance', async () => {
  const { spec, next, wanted } = bench
  expect(await engine.ensureVm(spec, wanted('on'), next())).toMatchObject({ power: 'running' })
  await engine.applyFirewall(spec, [rule], { ...next(), generation: 7 })
  expect(await engine.inspectVm(spec, AbortSignal.timeout(10_000))).toMatchObject({ firewallGeneration: 7 })
  expect(guest()).toMatchObject({ bridge: localBridgeOf(spec.network), firewall: { rules: [rule] } })
  expect(instance().devices.eth0).toMatchObject({ nictype: 'bridged', parent: guest().bridge })
  await expect(engine.applyFirewall(spec, [], { ...next(), generation: 6 })).rejects.toMatchObject({
    kind: 'stale',
  })
  // Incus notifies all members of a write to a network, an ACL or a forward, and fails if one of them is
  // down.
  expect(incus.written.filter((line) => /networks|network-acls/.test(line))).toEqual([])
  expect(incus.written.filter((line) => !line.includes(`/instances`))).toEqual(['POST /1.0/profiles'])
})

test('starting a VM does not replace a firewall that is newer than the one in the call', async () => {
  const { spec, next, wanted } = bench
  await engine.ensureVm(spec, wanted('off'), next())
  await engine.applyFirewall(spec, [rule], { ...next(), generation: 9 })
  await engine.ensureVm({ ...spec, isNew: false }, wanted('on'), next())
  expect(guest().firewall).toEqual({ generation: 9, rules: [rule] })
})

test('two subnets never share a VXLAN', async () => {
  const { spec, next, wanted } = bench
  await engine.ensureVm(spec, wanted('off'), next())
  const { vni } = guest()
  incus.recorded.set(`/1.0/profiles/vni-${vni}`, { config: { 'user.slipway.subnet': 'sl00000000000' } })
  const other = await createIncusEngine({ config: incusConfig({ socket: join(dir, 'socket') }) })
  incus.instances.clear()
  incus.recorded.delete(`/1.0/instances/vm-${spec.id}`)
  await other.ensureVm(spec, wanted('off'), next())
  expect(guest().vni).toBe(vni + 1)
  await other.close()
})

test('the VXLAN number of a subnet is released when its last VM is removed, and not while a VM still uses it', async () => {
  const { spec, next, wanted, signal } = bench
  await engine.ensureVm(spec, wanted('off'), next())
  const reservation = `vni-${guest().vni}`
  expect(instance().profiles).toContain(reservation)
  const removed = () => incus.asked.filter(({ method }) => method === 'DELETE').map(({ path }) => path)
  const profile = (used_by: string[]) =>
    incus.recorded.set('/1.0/profiles', [{ name: reservation, config: {}, used_by }])
  const inspect = async () => {
    const process = await createIncusEngine({ config: incusConfig({ socket: join(dir, 'socket') }) })
    for await (const _ of process.inventory(signal));
    await process.close()
  }
  profile([`/1.0/instances/vm-${spec.id}`])
  await inspect()
  // Instances that an earlier version of Slipway created have no profile.
  profile([])
  await inspect()
  expect(removed()).toEqual([])
  incus.instances.clear()
  await inspect()
  expect(removed()).toEqual([`/1.0/profiles/${reservation}`])
})

test('a VM does not start with a VXLAN number that another subnet has taken in the meantime', async () => {
  const { spec, next, wanted } = bench
  await engine.ensureVm(spec, wanted('off'), next())
  const { vni } = guest()
  // The engine still remembers the old number.
  incus.recorded.set(`/1.0/profiles/vni-${vni}`, { config: { 'user.slipway.subnet': 'sl00000000000' } })
  const start = () => engine.ensureVm({ ...spec, isNew: false }, wanted('on'), next())
  await expect(start()).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringMatching(/was released/),
  })
  expect(instance().status).toBe('Stopped')
  await start()
  expect([guest().vni, instance().profiles]).toEqual([vni + 1, [`vni-${vni + 1}`]])
})

test('a member without an agent gets no VMs as soon as another member has one', async () => {
  const bare = { server_name: 'm3', status: 'Online', message: '', config: {}, roles: [] }
  const members = incus.recorded.get('/1.0/cluster/members') as () => unknown[]
  incus.recorded.set('/1.0/cluster/members', () => [...members(), bare])
  incus.recorded.set('/1.0/cluster/members/m3', bare)
  const closed = new Map<string, boolean | undefined>()
  for await (const { name, isClosed } of engine.inventory(AbortSignal.timeout(10_000)))
    closed.set(name, isClosed)
  expect(Object.fromEntries(closed)).toEqual({ m1: undefined, m2: undefined, m3: true })
  const { spec, next, wanted } = bench
  await expect(engine.ensureVm({ ...spec, host: 'm3' }, wanted('off'), next())).rejects.toMatchObject({
    ...{ kind: 'unavailable', message: expect.stringContaining('m3 has no agent') },
  })
})

test('a guest whose shutdown request failed gets another request, and counts as running until then', async () => {
  const { spec, next, wanted } = bench
  await engine.ensureVm(spec, wanted('on'), next())
  const path = `PUT /1.0/instances/vm-${spec.id}/state`
  const stops = () => incus.asked.filter((asked) => `${asked.method} ${asked.path}` === path).slice(1)
  const accept = incus.recorded.get(path)
  incus.recorded.set(path, () => undefined)
  const call = next()
  await expect(engine.powerVm(spec, 'shutdown', call)).rejects.toThrow()
  expect(await engine.inspectVm(spec, call.signal)).toMatchObject({ power: 'running' })
  // From now on, the guest does not shut down immediately.
  incus.recorded.set(path, {})
  await engine.powerVm(spec, 'shutdown', call)
  expect(await engine.inspectVm(spec, call.signal)).toMatchObject({ power: 'stopping' })
  await engine.powerVm(spec, 'shutdown', call)
  expect(stops().map(({ body }) => body)).toEqual(Array(2).fill({ action: 'stop', timeout: 1 }))
  incus.recorded.set(path, accept)
  await engine.powerVm(spec, 'off', call)
  expect(await engine.inspectVm(spec, call.signal)).toMatchObject({ power: 'off' })
})

test('a guest is asked to shut down even if the preceding write takes Incus seconds', async () => {
  const { spec, next, wanted } = bench
  await engine.ensureVm(spec, wanted('on'), next())
  const path = `PUT /1.0/instances/vm-${spec.id}`
  const write = incus.recorded.get(path) as (asked: unknown) => unknown
  incus.recorded.set(path, async (asked: unknown) => {
    await sleep(2_100)
    incus.recorded.set(path, write)
    return write(asked)
  })
  await engine.powerVm(spec, 'shutdown', next())
  expect(instance().status).toBe('Stopped')
})

test('overlapping blocks and ports of a rule become a packet filter that nft accepts', () => {
  const of = (rules: CompiledRule[]): GuestNetwork => ({
    ...{ vmId: 'v', bridge: 'sl00000000001', vni: 1, subnetCidr: '10.0.0.0/24', gateway: '10.0.0.1' },
    ...{ macAddress: '52:54:00:00:00:01', privateAddress: '10.0.0.5', publicAddress: '203.0.113.5' },
    firewall: { generation: 1, rules },
  })
  const peers = ['10.1.0.0/16', '10.1.2.0/24', '10.1.0.0/16', '192.0.2.1/32']
  const filter = packetFilter([
    of([
      {
        ...rule,
        peers,
        destinationPorts: [
          [80, 90],
          [85, 100],
          [22, 22],
        ],
      },
    ]),
  ])
  expect(filter).toContain(
    'ip saddr { 10.1.0.0/16, 192.0.2.1/32 } meta l4proto tcp tcp dport { 22, 80-100 } accept',
  )
  // A VM without rules has chains that drop everything.
  expect(packetFilter([of([])])).toMatch(/chain ingress-10-0-0-5 \{ comment "v"\n {4}drop\n/)
})
