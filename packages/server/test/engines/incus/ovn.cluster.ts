import { randomUUID } from 'node:crypto'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CompiledRule } from '../../../src/domain/firewall.ts'
import type { HostReport, VmSpec } from '../../../src/engines/engine.ts'
import { ConformanceBench } from '../../support/conformance-bench.ts'
import { OvnBench } from '../../support/incus/ovn-bench.ts'
import { whyNoIncus } from '../../support/incus-bench.ts'

const image = { name: 'guest:latest', source: { alias: 'guest:latest' } }
const signal = AbortSignal.timeout(600_000)
const at = (generation: number) => ({ generation, signal })

describe.skipIf(whyNoIncus)(`OVN ${whyNoIncus}`, () => {
  let ovn: OvnBench
  let template: VmSpec
  beforeAll(async () => {
    ovn = await OvnBench.open()
    const subject = { engine: ovn.engine, host: 'm1', image, close: async () => {} }
    template = (await ConformanceBench.open(subject)).spec
  }, 240_000)
  afterAll(() => ovn?.close(), 60_000)

  const rule = (direction: 'ingress' | 'egress', peers: string[]): CompiledRule => ({
    ...{
      ruleId: randomUUID(),
      direction,
      action: 'allow',
      protocols: ['tcp'],
      peers,
      sourcePorts: [],
      destinationPorts: [[22, 22]],
    },
  })
  const open = [rule('ingress', ['0.0.0.0/0']), rule('egress', ['0.0.0.0/0'])]
  const wanted = (rules: CompiledRule[], generation = 1) =>
    ({ power: 'on', firewall: { rules, generation } }) as const
  const specOf = (networkId: string, number: number, host = 'm1'): VmSpec => ({
    ...{ ...template, id: randomUUID(), host },
    network: {
      ...{ ...template.network, networkId, publicAddress: `198.51.100.${208 + number}` },
      ...{ privateAddress: `172.27.0.${10 + number}`, macAddress: `52:54:00:c0:f3:0${number}` },
    },
  })
  const isRunning = (spec: VmSpec) =>
    eventually(async () => (await ovn.engine.inspectVm(spec, signal))?.power === 'running', 60_000)
  const reachesSsh = async (from: VmSpec, to: VmSpec) => {
    const command = ['timeout', '2', 'nc', to.network.privateAddress, '22']
    const path = ['--project', 'slipway', 'exec', `vm-${from.id}`, '--', ...command]
    return (await ovn.bench.members[0]!.cli(...path).catch((error) => error.stdout as string)).startsWith(
      'SSH-',
    )
  }

  test('networks with the same range span members side by side, with a firewall for each VM', async () => {
    const [first, second] = [randomUUID(), randomUUID()]
    const [one, other] = [specOf(first, 1), specOf(first, 2, 'm2')]
    const stranger = { ...specOf(second, 3), network: { ...specOf(second, 3).network } }
    stranger.network.privateAddress = one.network.privateAddress
    const reports: HostReport[] = []
    for await (const report of ovn.engine.inventory(signal)) reports.push(report)
    expect(reports).toMatchObject(ovn.bench.members.map(() => ({ capabilities: { network: 'ovn' } })))

    for (const spec of [one, other, stranger]) {
      await ovn.engine.ensureVm(spec, wanted(open), at(1))
      await isRunning(spec)
    }
    for (const { network } of [one, other])
      expect(await ovn.bench.greeting(network.publicAddress, 22)).toBe('SSH-')
    expect(await reachesSsh(one, other)).toBe(true)
    expect(await reachesSsh(other, one)).toBe(true)

    // Between guests, the receiver's rules decide, whatever the sender's rules allow.
    await ovn.engine.applyFirewall(one, [rule('ingress', ['172.27.0.12/32'])], at(2))
    await eventually(async () => (await ovn.bench.greeting(one.network.publicAddress, 22)) === '')
    await eventually(async () => (await ovn.bench.greeting(stranger.network.publicAddress, 22)) === 'SSH-')
    expect(await reachesSsh(other, one)).toBe(true)
    await ovn.engine.applyFirewall(one, [], at(3))
    await eventually(async () => !(await reachesSsh(other, one)))
    expect(await reachesSsh(one, other)).toBe(true)

    for (const spec of [one, other, stranger]) await ovn.engine.removeVm(spec, at(4))
    const networks = await ovn.bench.members[0]!.cli('network', 'list', '--format', 'csv', '-c', 'nt')
    expect(networks).not.toContain('ovn\n')
  })
})
