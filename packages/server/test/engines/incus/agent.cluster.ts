import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CompiledRule } from '../../../src/domain/firewall.ts'
import type { VmSpec, WantedState } from '../../../src/engines/engine.ts'
import { type AgentReport, agentKey } from '../../../src/engines/incus/agent/guest-network.ts'
import { publicRouteTable } from '../../../src/engines/incus/agent/host-network.ts'
import { ClusterBench, patienceMs, retrying } from '../../support/incus/cluster-bench.ts'

const exec = promisify(execFile)
const within = { timeout: 300_000 }

let cluster: ClusterBench
beforeAll(async () => {
  cluster = await ClusterBench.open()
}, 180_000)
afterAll(() => cluster?.close(), 60_000)

const rule = (direction: CompiledRule['direction'], changes: Partial<CompiledRule> = {}): CompiledRule => ({
  ...{ ruleId: randomUUID(), action: 'allow', direction, protocols: ['tcp'], peers: ['0.0.0.0/0'] },
  ...{ sourcePorts: [], destinationPorts: [] },
  ...changes,
})
const ssh = (changes: Partial<CompiledRule> = {}) =>
  rule('ingress', { destinationPorts: [[22, 22]], ...changes })
const on = (generation: number, ...rules: CompiledRule[]): WantedState => ({
  power: 'on',
  firewall: { generation, rules },
})

/** Returns a VM with a public address, and routes the address to the member of the VM. */
async function publicSpecOn(host: string): Promise<VmSpec> {
  const spec = cluster.specOn(host)
  const publicAddress = `203.0.113.${spec.network.privateAddress.split('.').at(-1)}`
  const member = cluster.members.find(({ name }) => name === host)!
  await cluster.bench.routePublic(`${publicAddress}/32`, member)
  return { ...spec, network: { ...spec.network, publicAddress } }
}

const greets = async ({ network }: VmSpec) => (await cluster.bench.greeting(network.publicAddress, 22)) !== ''
/** Returns whether a guest reaches a TCP port of another guest by its private address. */
async function reaches(from: VmSpec, to: VmSpec): Promise<boolean> {
  const member = cluster.members.find(({ name }) => name === from.host)!
  const pid = await member.pidOf(`vm-${from.id}`)
  const script = `exec 3<>/dev/tcp/${to.network.privateAddress}/22 && head -c 4 <&3`
  const inside = ['--target', String(pid), '--net', 'timeout', '2', 'bash', '-c', script]
  return exec('nsenter', inside).then(
    ({ stdout }) => stdout.startsWith('SSH-'),
    () => false,
  )
}

test(
  'rules filter packets from outside, and packets within a subnet on one member and across members',
  within,
  async () => {
    const { engine, at } = cluster
    const specs = await Promise.all(['m1', 'm1', 'm2'].map(publicSpecOn))
    const [target, beside, across] = specs as [VmSpec, VmSpec, VmSpec]
    for (const spec of specs) await retrying(() => engine.ensureVm(spec, on(1, ssh(), rule('egress')), at(1)))
    for (const spec of specs) await eventually(() => greets(spec), patienceMs)
    expect([await reaches(beside, target), await reaches(across, target)]).toEqual([true, true])

    // A BGP speaker announces what is in this table.
    const routes = ['-n', cluster.members[0]!.namespace, 'route', 'show', 'table', String(publicRouteTable)]
    expect((await exec('ip', routes)).stdout).toContain(`${target.network.publicAddress} dev sl`)

    // The receiver's rules apply to every sender.
    const fromBeside = ssh({ peers: [`${beside.network.privateAddress}/32`] })
    await engine.applyFirewall(target, [fromBeside], at(2))
    expect([await greets(target), await reaches(beside, target), await reaches(across, target)]).toEqual([
      ...[false, true, false],
    ])
    // The sender's rules apply as well, on its own member.
    const elsewhere = rule('egress', { peers: ['198.51.100.0/24'] })
    await engine.applyFirewall(beside, [ssh(), elsewhere], at(2))
    await engine.applyFirewall(target, [ssh()], at(3))
    expect([await greets(target), await reaches(beside, target), await reaches(across, target)]).toEqual([
      ...[true, false, true],
    ])
    await expect(engine.applyFirewall(target, [], at(2))).rejects.toMatchObject({ kind: 'stale' })
    for (const spec of specs) await retrying(() => engine.removeVm(spec, at(2)))
    await eventually(async () => !(await cluster.members[0]!.packetFilter()).includes(target.id), patienceMs)
  },
)

test(
  'with a dead member, VMs of the others are created, filtered, stopped, started and removed',
  within,
  async () => {
    const { engine, at, signal } = cluster
    const [first, dead] = cluster.members
    const old = await publicSpecOn('m1')
    await retrying(() => engine.ensureVm(old, on(1, ssh()), at(1)))
    await dead!.kill()
    // Each call must succeed the first time: nothing is retried here.
    const fresh = await publicSpecOn('m3')
    expect(await engine.ensureVm(fresh, on(1, ssh()), at(1))).toMatchObject({ firewallGeneration: 1 })
    // This VM is in a subnet that no member has yet.
    const other = cluster.specOn('m1')
    other.network = {
      ...{ ...other.network, networkId: randomUUID(), privateAddress: '10.66.0.5' },
      ...{ subnetCidr: '10.66.0.0/24', gateway: '10.66.0.1' },
    }
    expect(await engine.ensureVm(other, on(1), at(1))).toMatchObject({ power: 'running' })
    await eventually(() => greets(old), patienceMs)
    await engine.applyFirewall(old, [], at(2))
    expect(await greets(old)).toBe(false)
    await engine.applyFirewall(old, [ssh()], at(3))
    expect(await greets(old)).toBe(true)
    await engine.powerVm(old, 'off', at(2))
    expect(await engine.inspectVm(old, signal)).toMatchObject({ power: 'off' })
    await engine.ensureVm({ ...old, isNew: false }, on(3, ssh()), at(3))
    await eventually(() => greets(old), patienceMs)
    for (const spec of [old, fresh, other]) await engine.removeVm(spec, at(9))
    expect(await first!.instances()).toEqual([])
    await dead!.start()
    await cluster.everyReport()
  },
)

test(
  'while the agent of a member is down, the packet filter stays active and new VMs wait',
  within,
  async () => {
    const { engine, at } = cluster
    const [member] = cluster.members
    const old = await publicSpecOn('m1')
    await retrying(() => engine.ensureVm(old, on(1, ssh()), at(1)))
    await eventually(() => greets(old), patienceMs)
    await member!.killAgent()
    const late = await publicSpecOn('m1')
    await expect(engine.ensureVm(late, on(1, ssh()), at(1))).rejects.toMatchObject({
      ...{
        kind: 'unavailable',
        message: expect.stringMatching(/the agent of m1 did not apply .* slipway-agent/),
      },
    })
    expect([await greets(old), (await member!.packetFilter()).includes(late.id)]).toEqual([true, false])
    await member!.startAgent()
    await retrying(() => engine.ensureVm(late, on(1, ssh()), at(1)))
    await eventually(() => greets(late), patienceMs)
    for (const spec of [old, late]) await retrying(() => engine.removeVm(spec, at(2)))
  },
)

test(
  'a member that is cordoned while its agent reports keeps both the cordon and the report',
  within,
  async () => {
    const { engine, at, signal } = cluster
    const read = async () => {
      const member = await cluster.members[0]!.cli('query', '/1.0/cluster/members/m2')
      const { config } = JSON.parse(member) as { config: Record<string, string> }
      const { applied } = JSON.parse(config[agentKey]!) as AgentReport
      return { scheduler: config['scheduler.instance'], guests: Object.keys(applied).sort() }
    }
    const specs = Array.from({ length: 5 }, () => cluster.specOn('m2'))
    // The agent writes its report for each of these steps, and the step ends when the report is there.
    const change = async (spec: VmSpec) => {
      await retrying(() => engine.ensureVm(spec, on(1, ssh()), at(1)))
      for (const generation of [2, 3]) await retrying(() => engine.applyFirewall(spec, [], at(generation)))
    }
    // Incus can repeat the transaction of a write with values that it read before another write. A write of the agent
    // then restores the previous cordon, so the test sets the cordon again until it stays, as each inspection does.
    const cordon = (isCordoned: boolean) =>
      eventually(async () => {
        await retrying(() => engine.cordonHost('m2', isCordoned, signal))
        return (await read()).scheduler === (isCordoned ? 'manual' : undefined)
      }, patienceMs)
    let isOver = false
    const cordons = async () => {
      for (let count = 0; ; count += 2) {
        for (const isCordoned of [true, false]) await cordon(isCordoned)
        if (isOver) return count
      }
    }
    const changes = Promise.all(specs.map(change)).finally(() => {
      isOver = true
    })
    const [count] = await Promise.all([cordons(), changes])
    expect(count).toBeGreaterThan(0)
    await cordon(false)
    const ids = specs.map(({ id }) => id).sort()
    expect(await read()).toEqual({ scheduler: undefined, guests: ids })
    await cordon(true)
    for (const spec of specs) await retrying(() => engine.removeVm(spec, at(9)))
    await eventually(async () => (await read()).guests.length === 0, patienceMs)
    expect((await read()).scheduler).toBe('manual')
    await engine.cordonHost('m2', false, signal)
  },
)
