import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agentKey } from '../../../src/engines/incus/agent/guest-network.ts'
import { ClusterBench, patienceMs, retrying, wanted } from '../../support/incus/cluster-bench.ts'

const within = { timeout: 180_000 }

let cluster: ClusterBench
beforeAll(async () => {
  cluster = await ClusterBench.open()
}, 180_000)
afterAll(() => cluster?.close(), 60_000)

test(
  'creations that are in progress when the database leader is killed create one VM each',
  within,
  async () => {
    const leader = await cluster.bench.leader()
    const others = cluster.members.filter((member) => member !== leader)
    const worker = await cluster.workerAt(cluster.members.indexOf(others[0]!))
    const specs = others.flatMap(({ name }) => [cluster.specOn(name), cluster.specOn(name)])
    const creations = specs.map((spec) => retrying(() => worker.ensureVm(spec, wanted, cluster.at(1))))
    await eventually(async () => (await others[0]!.instances()).length > 0, patienceMs)
    await leader.kill()
    // Another member becomes the leader and responds.
    await eventually(
      async () => (await cluster.bench.leader(others[0]).catch(() => leader)) !== leader,
      patienceMs,
    )
    await leader.start()
    for (const status of await Promise.all(creations)) expect(status).toMatchObject({ power: 'running' })
    const after = await cluster.everyReport()
    for (const { name } of others)
      expect(
        after
          .get(name)!
          .vms.map(({ id }) => id)
          .sort(),
      ).toEqual(specs.flatMap(({ id, host }) => (host === name ? [id] : [])).sort())
    for (const spec of specs) await retrying(() => worker.removeVm(spec, cluster.at(2)))
    await worker.close()
  },
)

test(
  'a member that is cut off changes nothing, keeps its guest, and comes back with it',
  within,
  async () => {
    const [, cut] = cluster.members
    const spec = cluster.specOn('m2')
    await retrying(() => cluster.engine.ensureVm(spec, wanted, cluster.at(1)))
    const guestPid = await cut!.pidOf(`vm-${spec.id}`)
    const inside = await cluster.workerAt(1)
    await cluster.bench.cutOff(cut!)
    const brief = () => AbortSignal.timeout(8_000)
    await expect(cluster.engine.powerVm(spec, 'off', { generation: 2, signal: brief() })).rejects.toThrow()
    // A worker on the other side of the cut has no majority to write with.
    await expect(inside.removeVm(spec, { generation: 2, signal: brief() })).rejects.toThrow()
    await eventually(async () => !(await retrying(() => cluster.reports())).has('m2'), patienceMs)
    process.kill(guestPid, 0)
    await cluster.bench.reconnect(cut!)
    expect((await cluster.everyReport()).get('m2')!.vms).toMatchObject([{ id: spec.id, power: 'running' }])
    expect(await cut!.pidOf(`vm-${spec.id}`)).toBe(guestPid)
    await retrying(() => inside.removeVm(spec, cluster.at(3)))
    expect((await cluster.everyReport()).get('m2')!.vms).toEqual([])
    await inside.close()
  },
)

test(
  'a cordoned member is removed from the Incus scheduler, and an evacuated one is not changed',
  within,
  async () => {
    const [asked] = cluster.members
    // The agent of the member reports its VMs in the same configuration.
    const read = async () => {
      const member = JSON.parse(await asked!.cli('query', '/1.0/cluster/members/m3')) as {
        config: Record<string, string>
        roles: string[]
      }
      const { [agentKey]: _, ...config } = member.config
      return { ...member, config }
    }
    const cordoned = async () => (await cluster.everyReport()).get('m3')!.isCordoned
    const before = await read()
    await cluster.engine.cordonHost('m3', true, cluster.signal)
    expect(await read()).toMatchObject({ roles: before.roles, config: { 'scheduler.instance': 'manual' } })
    expect(await cordoned()).toBe(true)
    // Requests with a target member ignore the cordon: a VM on this member can be started.
    const spec = cluster.specOn('m3')
    expect(await retrying(() => cluster.engine.ensureVm(spec, wanted, cluster.at(1)))).toMatchObject({
      power: 'running',
    })
    await retrying(() => cluster.engine.removeVm(spec, cluster.at(2)))
    await cluster.engine.cordonHost('m3', false, cluster.signal)
    expect(await read()).toMatchObject({ roles: before.roles, config: before.config })
    expect(await cordoned()).toBe(false)

    await asked!.cli('cluster', 'evacuate', 'm3', '--force')
    expect(await cordoned()).toBeUndefined()
    await cluster.engine.cordonHost('m3', true, cluster.signal)
    expect((await read()).config).toEqual(before.config)
    await asked!.cli('cluster', 'restore', 'm3', '--force')
    expect(await cordoned()).toBe(false)
  },
)
