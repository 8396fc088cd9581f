import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine, VmSpec } from '../../src/engines/engine.ts'
import { allow } from '../support/conformance-bench.ts'
import { makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { diskOf, specOf, wanted } from '../support/qemu-spec.ts'

const WITHIN = { timeout: 300_000 }
const signal = AbortSignal.timeout(900_000)
/**
 * These limits are far below what an emulated guest reaches. A slow machine only makes transfers slower, so the
 * tests check minimum times.
 */
const networkBytesPerS = 1_000_000
const diskBytesPerS = 4_000_000
const sentBytes = 3_000_000
const expectedS = (sentBytes / networkBytesPerS) * 0.9

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let vm: VmSpec
let destination: string

beforeAll(async () => {
  bench = await makeBench()
  engine = await bench.open()
  let host = ''
  for await (const { name } of engine.inventory(signal)) host = name
  const disk = diskOf(host, { mbps: diskBytesPerS / 1e6 })
  await engine.ensureDisk(disk, { generation: 1, signal })
  const plain = specOf(bench, host, { name: 'limited' })
  const network = { ...plain.network, gbps: (networkBytesPerS * 8) / 1e9 }
  vm = { ...plain, network, disks: [disk] }
  const rules = [allow(22), allow(7000), allow(7001)]
  await engine.ensureVm(vm, wanted('on', rules), { generation: 1, signal })
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

const untilListening = (port: number) => `until netstat -ltn | grep -q ':${port} '; do usleep 100000; done`
const inGuest = (command: string) => bench.ssh(destination, command)

test('a qemu guest receives no faster than the limit of its network', WITHIN, async () => {
  // The guest replies after the last byte. Otherwise data that is still in flight would not count.
  const sink = `head -c ${sentBytes} | wc -c`
  await inGuest(`printf '#!/bin/sh\\n${sink}\\n' >/root/sink; chmod 755 /root/sink`)
  await inGuest(`nc -l -p 7000 -e /root/sink </dev/null >/dev/null 2>&1 & ${untilListening(7000)}`)
  const socket = connect(7000, vm.network.publicAddress)
  await once(socket, 'connect')
  const startedAt = performance.now()
  socket.write(Buffer.alloc(sentBytes))
  const [reply] = await once(socket, 'data')
  const seconds = (performance.now() - startedAt) / 1000
  socket.destroy()
  expect(String(reply).trim()).toBe(String(sentBytes))
  console.log(`received ${(sentBytes / seconds / 1e6).toFixed(1)} MB/s of ${networkBytesPerS / 1e6}`)
  expect(seconds).toBeGreaterThan(expectedS)
})

test('a qemu guest sends no faster than the limit of its network', WITHIN, async () => {
  await inGuest(
    `head -c ${sentBytes} /dev/zero >/root/data; nc -l -p 7001 </root/data >/dev/null 2>&1 & ${untilListening(7001)}`,
  )
  const socket = connect(7001, vm.network.publicAddress)
  const startedAt = performance.now()
  let bytes = 0
  for await (const chunk of socket) {
    bytes += chunk.length
    if (bytes === sentBytes) break
  }
  const seconds = (performance.now() - startedAt) / 1000
  expect(bytes).toBe(sentBytes)
  console.log(`sent ${(sentBytes / seconds / 1e6).toFixed(1)} MB/s of ${networkBytesPerS / 1e6}`)
  expect(seconds).toBeGreaterThan(expectedS)
})

test('a disk of a qemu guest is written and read no faster than its limit', WITHIN, async () => {
  const [disk] = vm.disks
  const device = await inGuest(`basename $(dirname $(grep -l ${disk!.serialNumber} /sys/block/vd*/serial))`)
  const mebibytes = 12
  const timed = async (command: string) => {
    const clock = `cut -d ' ' -f 1 /proc/uptime`
    const output = await inGuest(
      `echo 3 >/proc/sys/vm/drop_caches; ${clock}; ${command} 2>/dev/null; ${clock}`,
    )
    const [startedAt, ended] = output.split('\n').map(Number)
    return ended! - startedAt!
  }
  const leastS = ((mebibytes * 1024 * 1024) / diskBytesPerS) * 0.8
  const writing = await timed(`dd if=/dev/zero of=/dev/${device} bs=1M count=${mebibytes} conv=fsync`)
  const reading = await timed(`dd if=/dev/${device} of=/dev/null bs=1M count=${mebibytes}`)
  console.log(`wrote for ${writing.toFixed(1)} s, read for ${reading.toFixed(1)} s`)
  expect(writing).toBeGreaterThan(leastS)
  expect(reading).toBeGreaterThan(leastS)
})
