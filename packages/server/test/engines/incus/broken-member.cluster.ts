import type { Host } from '@slipway/contract'
import { eventually } from '@slipway/testing/eventually.ts'
import { resourcesOf } from '@slipway/testing/resources.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { location, ServiceBench } from '../../support/incus/service-bench.ts'
import type { IncusMember } from '../../support/incus-bench.ts'

const vmCount = Number(process.env.SLIPWAY_VMS ?? 20)
const patienceMs = 240_000
const slowMs = 1_100
const stoppedFile = '/root/stopped'

let setup: ServiceBench
let resources: ReturnType<typeof resourcesOf>
beforeAll(async () => {
  setup = await ServiceBench.open()
  resources = resourcesOf(setup.service)
}, 240_000)
afterAll(() => setup?.close(), 60_000)

type OperationResponse = Awaited<ReturnType<typeof resources.createVm>>

/** Waits until all operations have succeeded, and prints how long the slowest took. */
async function runAll(what: string, begin: () => Promise<OperationResponse>[]): Promise<string[]> {
  const startedMs = performance.now()
  const ids = await Promise.all((await Promise.all(begin())).map((accepted) => resources.succeeded(accepted)))
  console.info(`${what}: ${Math.round(performance.now() - startedMs)} ms`)
  return ids
}

const faults: Record<
  string,
  { break: (member: IncusMember) => unknown; repair: (member: IncusMember) => unknown }
> = {
  killed: { break: (member) => member.kill(), repair: (member) => member.start() },
  hanging: { break: (member) => member.freeze(), repair: (member) => member.thaw() },
  slow: {
    break: (member) => Object.assign(setup.relays.get(member)!, { delayMs: slowMs }),
    repair: (member) => Object.assign(setup.relays.get(member)!, { delayMs: 0 }),
  },
  'cut off': {
    break: (member) => setup.bench.cutOff(member),
    repair: (member) => setup.bench.reconnect(member),
  },
}

async function setSchedulable(name: string, schedulable: boolean): Promise<void> {
  const token = setup.service.credentials.operator_key
  const host = (await setup.hosts()).find((one) => one.name === name)!
  await setup.service.ok('adminHostUpdate', { token, params: { host_id: host.id }, body: { schedulable } })
}

const cases = Object.keys(faults).flatMap((fault) => [
  { fault, role: 'member' },
  { fault, role: 'leader' },
])

test.each(cases)(
  'with a $role that is $fault, nothing fails on the other members',
  { timeout: 900_000 },
  async ({ fault, role }) => {
    const leader = await setup.bench.leader()
    const broken = role === 'leader' ? leader : setup.bench.members.find((member) => member !== leader)!
    const others = setup.bench.members.filter((member) => member !== broken).map(({ name }) => name)
    // Cordon the member, because placement would use it until the service detects the fault.
    await setSchedulable(broken.name, false)
    const [before] = await runAll('one VM before', () => [resources.createVm(wanted())])
    await faults[fault]!.break(broken)
    const startedMs = performance.now()
    try {
      const ids = await runAll(`${vmCount} creations`, () =>
        Array.from({ length: vmCount }, () => resources.createVm(wanted())),
      )
      await runAll('a rule', () => [resources.createRule()])
      await runAll('stops', () => ids.map((id) => resources.act(id, { action: 'STOP' })))
      // The file shows that the guest ran its shutdown script and was not just powered off.
      for (const id of ids) expect(setup.bench.hasFile(id, stoppedFile)).toBe(true)
      await runAll('starts', () => ids.map((id) => resources.act(id, { action: 'START' })))
      // The guests of healthy members kept their state.
      expect(await resources.stateOf(before!)).toBe('STATE_RUNNING')
      for (const { name, state } of await setup.hosts())
        if (others.includes(name)) expect([name, state]).toEqual([name, 'up'])
      await runAll('deletions', () => [...ids, before!].map((id) => resources.removeVm(id)))
      const downs = await setup.service.sql<{ name: string }>(
        `SELECT data->>'name' AS name FROM events WHERE type = 'host.down' AND data->>'name' = ANY($1)`,
        [others],
      )
      expect(downs).toEqual([])
    } catch (error) {
      const isRelevant = (line: string) => /"level":[45]0/.test(line)
      console.info(setup.service.logLines.filter(isRelevant).slice(-30).join(''))
      throw error
    } finally {
      console.info(`${role} ${fault} for ${Math.round(performance.now() - startedMs)} ms`)
      await faults[fault]!.repair(broken)
    }
  },
)

// The next case must not depend on the result of this one.
afterEach(async () => {
  const repairedMs = performance.now()
  const repairedAt = new Date().toISOString()
  // A report from before the repair can still mark the host as down, so wait for one that was made after it.
  const isUp = ({ state, last_report_at }: Host) => state === 'up' && last_report_at > repairedAt
  await eventually(async () => (await setup.hosts()).every(isUp), patienceMs)
  console.info(`all hosts up after the repair: ${Math.round(performance.now() - repairedMs)} ms`)
  const { items } = await setup.service.ok('vmList')
  await runAll('leftovers', () => items.map(({ id }) => resources.removeVm(id)))
  // GPUs of deleted VMs are free after the next report of their host.
  const isReady = ({ gpus }: Host) => gpus.every((gpu) => gpu.state === 'free')
  await eventually(async () => (await setup.hosts()).every(isReady), patienceMs)
  for (const { name } of await setup.hosts()) await setSchedulable(name, true)
  await setup.service.sql(`DELETE FROM events WHERE type = 'host.down'`)
}, 600_000)

const wanted = () => ({
  ...{ type: 'a100-80gb.1x', location, image: 'guest:latest', public_ip: 'none' },
  shutdown_script: `#!/bin/sh\necho stopped >${stoppedFile}\n`,
})
