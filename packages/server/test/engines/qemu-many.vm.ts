import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine, VmSpec } from '../../src/engines/engine.ts'
import { makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { specOf, wanted } from '../support/qemu-spec.ts'

const COUNT = 20
const signal = AbortSignal.timeout(3_000_000)
const call = (generation: number) => ({ generation, signal })

/** This test is slow, and therefore separate from the ordinary tests. */

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let specs: VmSpec[]

beforeAll(async () => {
  bench = await makeBench()
  engine = await bench.open({ bootTimeoutS: 1_800 })
  let host = ''
  for await (const report of engine.inventory(signal)) host = report.name
  const [, , third] = bench.publicAddress.split('.')
  specs = Array.from({ length: COUNT }, (_, index) => {
    const spec = specOf(bench, host, { name: `many-${index}` })
    return { ...spec, network: { ...spec.network, publicAddress: `127.100.${third}.${index + 1}` } }
  })
}, 300_000)
afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 120_000)

test('twenty concurrent qemu VMs all start, respond, and are removed completely', {
  timeout: 3_000_000,
}, async () => {
  await Promise.all(
    specs.map(async (spec) => {
      await engine.ensureVm(spec, wanted('on'), call(1))
      for (;;) {
        const status = await engine.inspectVm(spec, signal)
        expect(status?.power).toMatch(/booting|running/)
        if (status?.power === 'running') break
        await new Promise((resolve) => setTimeout(resolve, 1_000))
      }
    }),
  )
  for await (const report of engine.inventory(signal))
    expect(report.vms.filter((vm) => vm.power === 'running')).toHaveLength(COUNT)
  await Promise.all(specs.map((spec) => engine.removeVm(spec, call(2))))
  const left = (await bench.processes()).filter(({ commandLine }) => commandLine.startsWith('qemu-system'))
  expect(left).toEqual([])
})
