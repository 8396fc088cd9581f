import { setTimeout as sleep } from 'node:timers/promises'
import { gpuMetricNames } from '@slipway/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine, VmSample, VmSpec } from '../../src/engines/engine.ts'
import { allow } from '../support/conformance-bench.ts'
import { makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { fakeNvidiaSmi, reportNow, specOf, wanted } from '../support/qemu-spec.ts'

const WITHIN = { timeout: 300_000 }
const signal = AbortSignal.timeout(900_000)

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let vm: VmSpec
let destination: string

beforeAll(async () => {
  bench = await makeBench()
  engine = await bench.open()
  let host = ''
  for await (const { name } of engine.inventory(signal)) host = name
  vm = specOf(bench, host, { name: 'busy', startupScript: fakeNvidiaSmi })
  await engine.ensureVm(vm, wanted('on', [allow(22)]), { generation: 1, signal })
  for (;;) {
    const status = await engine.inspectVm(vm, signal)
    if (status?.power === 'running') {
      destination = status.sshDestination
      break
    }
    if (status?.power === 'crashed') throw new Error(status.detail)
    await sleep(100)
  }
}, 300_000)

afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

async function sampleUntil(isWanted: (sample: VmSample) => boolean): Promise<VmSample> {
  for (;;) {
    for await (const sample of engine.sample(signal))
      if (sample.vmId === vm.id && isWanted(sample)) return sample
    await sleep(200)
  }
}

const hasGpu = ({ guest }: VmSample) => guest !== null && guest.gpus.length > 0
const inGuest = (command: string) => bench.ssh(destination, command)

test('a qemu guest reports the load of its GPU, and is measured from outside', WITHIN, async () => {
  await inGuest('until [ -x /usr/bin/nvidia-smi ]; do sleep 1; done')
  await inGuest(reportNow)
  const { host, guest } = await sampleUntil(hasGpu)
  const [gpu] = guest!.gpus
  const metric = (name: (typeof gpuMetricNames)[number]) => gpu!.values[gpuMetricNames.indexOf(name)]
  expect(gpu!.name).toBe('NVIDIA H200')
  expect(metric('DCGM_FI_DEV_POWER_USAGE')).toBeCloseTo(691.72)
  expect(metric('DCGM_FI_DEV_GPU_UTIL')).toBe(100)
  expect(host.slipway_vm_cpu_seconds_total).toBeGreaterThan(1)
  expect(host.slipway_vm_memory_bytes).toBeGreaterThan(50_000_000)
  expect(host.slipway_vm_disk_read_bytes_total).toBeGreaterThan(0)
  expect(host.slipway_vm_network_transmit_bytes_total).toBeGreaterThan(0)
})

test('a qemu guest that writes 10 MiB of garbage to its port changes nothing', WITHIN, async () => {
  const port = await inGuest('basename $(dirname $(grep -l org.slipway /sys/class/virtio-ports/*/name))')
  await inGuest(`head -c 10485760 /dev/urandom >/dev/${port}`)
  const before = await sampleUntil(() => true)
  expect(before.guest).toBeNull()
  await inGuest(reportNow)
  expect((await sampleUntil(hasGpu)).guest!.sshSessions).toBeGreaterThanOrEqual(0)
})
