import { randomUUID } from 'node:crypto'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HostReport, VmSpec, WantedState } from '../../src/engines/engine.ts'
import type { IncusEngine } from '../../src/engines/incus/engine.ts'
import { ConformanceBench } from '../support/conformance-bench.ts'
import { IncusBench } from '../support/incus-bench.ts'

const within = { timeout: 180_000 }
const patienceMs = 120_000
const signal = AbortSignal.timeout(900_000)
const image = { name: 'guest:latest', source: { alias: 'guest:latest' } }
const wanted = (generation = 1): WantedState => ({ power: 'on', firewall: { rules: [], generation } })
const at = (generation: number) => ({ generation, signal })

let bench: IncusBench
let engine: IncusEngine
let template: VmSpec
let count = 0
beforeAll(async () => {
  bench = await IncusBench.cluster(3)
  engine = await bench.engine()
  const subject = { engine, host: 'm1', image, close: async () => {} }
  template = (await ConformanceBench.open(subject)).spec
}, 180_000)
afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

function specOn(host: string): VmSpec {
  const number = ++count
  const network = {
    ...template.network,
    macAddress: `52:54:00:c0:f2:${number.toString(16).padStart(2, '0')}`,
    privateAddress: `172.27.0.${30 + number}`,
    publicAddress: '',
  }
  return { ...template, id: randomUUID(), host, network }
}

async function reports(): Promise<Map<string, HostReport>> {
  const found = new Map<string, HostReport>()
  for await (const report of engine.inventory(signal)) if (!report.isAway) found.set(report.name, report)
  return found
}

const everyReport = () =>
  eventually(async () => {
    const found = await reports().catch(() => new Map<string, HostReport>())
    return found.size === bench.members.length && found
  }, patienceMs)

/** Returns what the engine does in the end, after all the times that it could not say. */
const inTheEnd = <T>(work: () => Promise<T>) =>
  eventually(async () => {
    try {
      return { value: await work() }
    } catch (error) {
      expect(error).toMatchObject({ kind: 'unavailable' })
      return null
    }
  }, patienceMs).then(({ value }) => value)

test('a cluster places each VM on its member, and lives on when a member is killed', within, async () => {
  const specs = ['m1', 'm2', 'm3'].map(specOn)
  for (const spec of specs)
    expect(await engine.ensureVm(spec, wanted(), at(1))).toMatchObject({ power: 'running' })
  const before = await reports()
  expect([...before.keys()].sort()).toEqual(['m1', 'm2', 'm3'])
  for (const spec of specs)
    expect(before.get(spec.host)!.vms).toMatchObject([{ id: spec.id, power: 'running', generation: 1 }])

  const [, second] = bench.members
  const [first, lost, third] = specs as [VmSpec, VmSpec, VmSpec]
  const guestPid = await second!.pidOf(`vm-${lost.id}`)
  await second!.kill()
  // Nobody answers for the guest, which lives on, and its silence is not taken for its end.
  process.kill(guestPid, 0)
  await expect(engine.inspectVm(lost, signal)).rejects.toMatchObject({ kind: 'unavailable' })
  await expect(engine.ensureVm(lost, wanted(), at(2))).rejects.toMatchObject({ kind: 'unavailable' })
  expect((await reports()).has('m2')).toBe(false)

  // The VMs of others can be stopped, started and removed.
  await engine.powerVm(first, 'off', at(2))
  expect(await engine.ensureVm({ ...first, isNew: false }, wanted(), at(3))).toMatchObject({
    power: 'running',
  })
  await engine.removeVm(third, at(2))
  expect(await engine.inspectVm(third, signal)).toBeNull()
  // Incus changes no firewall until every member hears of it: a new VM waits, off and with its gate closed.
  const late = specOn('m3')
  await expect(engine.ensureVm(late, wanted(), at(1))).rejects.toMatchObject({ kind: 'unavailable' })
  expect((await reports()).get('m3')!.vms).toMatchObject([{ id: late.id, power: 'off' }])
  await expect(second!.cli('--project', 'slipway', 'start', `vm-${late.id}`)).rejects.toThrow()

  await second!.start()
  expect(await inTheEnd(() => engine.inspectVm(lost, signal))).toMatchObject({
    ...{ power: 'running', generation: 1, firewallGeneration: 1 },
  })
  expect(await second!.pidOf(`vm-${lost.id}`)).toBe(guestPid)
  expect(await inTheEnd(() => engine.ensureVm(late, wanted(), at(2)))).toMatchObject({ power: 'running' })
  const after = await everyReport()
  for (const spec of [first, lost, late]) expect(after.get(spec.host)!.vms).toMatchObject([{ id: spec.id }])
  for (const spec of [first, lost, late]) await engine.removeVm(spec, at(9))
  for (const { vms } of (await everyReport()).values()) expect(vms).toEqual([])
})

test(
  'two workers that speak to different members make one VM, and the late one nothing',
  within,
  async () => {
    const other = await bench.engine(bench.config({ socket: bench.members[1]!.socket }))
    const spec = specOn('m3')
    const [older, newer] = await Promise.allSettled([
      engine.ensureVm(spec, wanted(), at(1)),
      inTheEnd(() => other.ensureVm(spec, wanted(), at(2))),
    ])
    expect(newer).toMatchObject({ value: { power: 'running', generation: 2 } })
    if (older.status === 'rejected') expect(older.reason).toMatchObject({ name: 'EngineError' })
    expect((await everyReport()).get('m3')!.vms).toMatchObject([{ id: spec.id, generation: 2 }])
    await inTheEnd(() => engine.removeVm(spec, at(3)))
    await expect(other.ensureVm(spec, wanted(), at(2))).rejects.toMatchObject({ kind: 'stale' })
    await expect(other.powerVm(spec, 'reset', at(2))).rejects.toMatchObject({ name: 'EngineError' })
    expect((await everyReport()).get('m3')!.vms).toEqual([])
    await other.close()
  },
)

test(
  'creations that are under way when the database leader is killed end in one VM each',
  within,
  async () => {
    const leader = await bench.leader()
    const others = bench.members.filter((member) => member !== leader)
    const worker = await bench.engine(bench.config({ socket: others[0]!.socket }))
    const specs = others.flatMap(({ name }) => [specOn(name), specOn(name)])
    const creations = specs.map((spec) => inTheEnd(() => worker.ensureVm(spec, wanted(), at(1))))
    await eventually(async () => (await others[0]!.instances()).length > 0, patienceMs)
    await leader.kill()
    // Somebody else leads and answers; firewalls wait for the member.
    await eventually(async () => (await bench.leader(others[0]).catch(() => leader)) !== leader, patienceMs)
    await leader.start()
    for (const status of await Promise.all(creations)) expect(status).toMatchObject({ power: 'running' })
    const after = await everyReport()
    for (const { name } of others)
      expect(
        after
          .get(name)!
          .vms.map(({ id }) => id)
          .sort(),
      ).toEqual(specs.flatMap(({ id, host }) => (host === name ? [id] : [])).sort())
    for (const spec of specs) await inTheEnd(() => worker.removeVm(spec, at(2)))
    await worker.close()
  },
)

test(
  'a member that is cut off changes nothing, keeps its guest, and comes back with it',
  within,
  async () => {
    const [, cut] = bench.members
    const spec = specOn('m2')
    await inTheEnd(() => engine.ensureVm(spec, wanted(), at(1)))
    const guestPid = await cut!.pidOf(`vm-${spec.id}`)
    const inside = await bench.engine(bench.config({ socket: cut!.socket }))
    await bench.cutOff(cut!)
    const brief = () => AbortSignal.timeout(8_000)
    await expect(engine.powerVm(spec, 'off', { generation: 2, signal: brief() })).rejects.toThrow()
    // A worker on the other side of the cut has no majority to write with.
    await expect(inside.removeVm(spec, { generation: 2, signal: brief() })).rejects.toThrow()
    await eventually(async () => !(await reports()).has('m2'), patienceMs)
    process.kill(guestPid, 0)
    await bench.reconnect(cut!)
    expect((await everyReport()).get('m2')!.vms).toMatchObject([{ id: spec.id, power: 'running' }])
    expect(await cut!.pidOf(`vm-${spec.id}`)).toBe(guestPid)
    await inTheEnd(() => inside.removeVm(spec, at(3)))
    expect((await everyReport()).get('m2')!.vms).toEqual([])
    await inside.close()
  },
)
