import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newHostKey } from '../../../src/domain/guest/host-key.ts'
import type { VmSpec, VmStatus } from '../../../src/engines/engine.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { allow, ConformanceBench } from '../../support/conformance-bench.ts'
import { EventRelay } from '../../support/incus/event-relay.ts'
import { IncusBench, type IncusMember } from '../../support/incus-bench.ts'

const within = { timeout: 60_000 }
const signal = AbortSignal.timeout(240_000)
const image = { name: 'guest:latest', source: { alias: 'guest:latest' } }
const wanted = (power: 'on' | 'off') => ({ power, firewall: { rules: [], generation: 1 } })
const at = (generation: number) => ({ generation, signal })

let bench: IncusBench
let engine: IncusEngine
let member: IncusMember
let template: VmSpec
let count = 0
beforeAll(async () => {
  bench = await IncusBench.alone()
  member = bench.members[0]!
  engine = await bench.engine()
  const subject = { engine, host: 'm1', image, close: async () => {} }
  template = (await ConformanceBench.open(subject)).spec
}, 120_000)
afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

function newSpec(): VmSpec {
  const number = ++count
  const [mac, address] = [`52:54:00:c0:f1:0${number}`, `172.27.0.${20 + number}`]
  const network = { ...template.network, macAddress: mac, privateAddress: address, publicAddress: '' }
  return { ...template, id: randomUUID(), network }
}
const cli = (...args: string[]) => member.cli('--project', 'slipway', ...args)
const becomes = (spec: VmSpec, power: VmStatus['power']) =>
  eventually(async () => (await engine.inspectVm(spec, signal))?.power === power, within.timeout)
const startByHand = (id: string) => cli('start', `vm-${id}`)

test(
  'a stopped VM cannot be started in Incus by a late call, and its GPUs are released',
  within,
  async () => {
    const spec = newSpec()
    await engine.ensureVm(spec, wanted('off'), at(1))
    await expect(startByHand(spec.id)).rejects.toThrow()
    expect((await engine.ensureVm(spec, wanted('on'), at(2)))?.power).toBe('running')
    await engine.powerVm(spec, 'off', at(3))
    await expect(startByHand(spec.id)).rejects.toThrow()
    expect(await cli('config', 'get', `vm-${spec.id}`, 'user.slipway.gpus')).toBe('\n')
    await engine.removeVm(spec, at(4))
  },
)

test(
  'a guest that shuts down counts as off only when a late call can no longer start it',
  within,
  async () => {
    const spec = newSpec()
    await engine.ensureVm(spec, wanted('on'), at(1))
    await engine.powerVm(spec, 'shutdown', at(2))
    await becomes(spec, 'off')
    await expect(startByHand(spec.id)).rejects.toThrow()
    await engine.removeVm(spec, at(3))
  },
)

test(
  'if two workers change the power of one VM at the same time, the older call has no effect',
  within,
  async () => {
    const spec = newSpec()
    const other = await bench.engine()
    await engine.ensureVm(spec, wanted('off'), at(1))
    const [older, newer] = await Promise.allSettled([
      other.ensureVm(spec, wanted('on'), at(2)),
      engine.powerVm(spec, 'off', at(3)),
    ])
    expect(newer).toMatchObject({ status: 'fulfilled' })
    // In either order, the VM is off after the newer call and stays off.
    if (older.status === 'rejected') expect(older.reason).toMatchObject({ name: 'EngineError' })
    expect((await engine.inspectVm(spec, signal))?.power).toBe('off')
    await expect(startByHand(spec.id)).rejects.toThrow()
    await other.close()
    await engine.removeVm(spec, at(4))
  },
)

test('a creation that is paused during the removal of its VM creates nothing', within, async () => {
  const spec = newSpec()
  await engine.removeVm(spec, at(2))
  await expect(engine.ensureVm(spec, wanted('on'), at(1))).rejects.toMatchObject({ kind: 'stale' })
  // The creation looked for the removal mark before the pause, and creates the instance afterwards.
  const sleeper = await bench.engine()
  const racing = newSpec()
  const [creation] = await Promise.allSettled([
    sleeper.ensureVm(racing, wanted('on'), at(1)),
    engine.removeVm(racing, at(2)),
  ])
  await engine.removeVm(racing, at(2))
  if (creation.status === 'rejected') expect(creation.reason).toMatchObject({ name: 'EngineError' })
  expect(await engine.inspectVm(racing, signal)).toBeNull()
  await expect(sleeper.ensureVm(racing, wanted('on'), at(1))).rejects.toMatchObject({ kind: 'stale' })
  expect(await engine.inspectVm(racing, signal)).toBeNull()
  await sleeper.close()
})

test(
  'a guest that dies on its own counts as crashed, and can be reset with a newer generation',
  within,
  async () => {
    const spec = newSpec()
    await engine.ensureVm(spec, wanted('on'), at(1))
    const received = new Promise<string>((resolve) => engine.watch(resolve))
    await cli('exec', `vm-${spec.id}`, '--', '/bin/busybox', 'poweroff', '-f').catch(() => {})
    await becomes(spec, 'crashed')
    expect(await received).toBe(spec.id)
    expect((await engine.ensureVm(spec, wanted('on'), at(2)))?.power).toBe('crashed')
    await engine.powerVm(spec, 'reset', at(3))
    expect((await engine.inspectVm(spec, signal))?.power).toBe('running')
    await engine.removeVm(spec, at(4))
  },
)

test('the private half of a host key is removed from Incus when the guest has booted', within, async () => {
  const base = newSpec()
  const spec = {
    ...base,
    sshHostKey: newHostKey(),
    network: { ...base.network, publicAddress: '203.0.113.9' },
  }
  const userData = () => cli('config', 'get', `vm-${spec.id}`, 'cloud-init.user-data')
  await engine.ensureVm(spec, wanted('off'), at(1))
  expect(await userData()).toContain('ed25519_private')
  await engine.ensureVm(spec, { power: 'on', firewall: { rules: [allow(22)], generation: 2 } }, at(2))
  await becomes(spec, 'running')
  expect(await userData()).not.toContain('ed25519_private')
  expect(await cli('config', 'show', `vm-${spec.id}`)).not.toContain('later-user-data')
  await engine.removeVm(spec, at(3))
})

test('a worker that receives events late or never still detects what happened', within, async () => {
  const relay = await EventRelay.open(join(bench.dir, 'relay'), member.socket)
  const slow = await bench.engine(bench.config({ socket: relay.path }))
  const received: string[] = []
  slow.watch((vmId) => received.push(vmId))
  const spec = newSpec()
  expect((await slow.ensureVm(spec, wanted('on'), at(1)))?.power).toBe('running')
  await eventually(() => relay.heldCount > 0)
  received.length = 0
  await cli('exec', `vm-${spec.id}`, '--', '/bin/busybox', 'poweroff', '-f').catch(() => {})
  await eventually(async () => {
    for await (const { vms } of slow.inventory(signal))
      if (vms.some(({ id, power }) => id === spec.id && power === 'crashed')) return true
    return false
  }, within.timeout)
  expect(received).toEqual([])
  // After lost events, a new listener is notified that everything may have changed.
  relay.drop()
  await eventually(() => received.includes(spec.id), within.timeout)
  await slow.removeVm(spec, at(2))
  // These events arrive after the VM was removed.
  await eventually(() => relay.heldCount > 0)
  received.length = 0
  relay.release()
  await eventually(() => received.includes(spec.id), within.timeout)
  expect(await slow.inspectVm(spec, signal)).toBeNull()
  await slow.close()
  await relay.close()
})
