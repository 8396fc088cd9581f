import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { root } from '@slipway/testing/root.ts'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { maxReportBytes, parseGuestReport } from '../../src/domain/guest/report.ts'
import { guestPort, guestReporter } from '../../src/engines/guest-reporter.ts'
import { parseMetrics } from '../../src/engines/incus/metrics.ts'
import { lastReport } from '../../src/engines/qemu/samples.ts'

const line = (gpu: object = {}) =>
  JSON.stringify({ slipway_guest: 1, ssh_sessions: 1, gpus: [{ uuid: 'GPU-1', name: 'H200', ...gpu }] })

test('a report has bounded values, and everything else in it is ignored', () => {
  const given = { DCGM_FI_DEV_GPU_UTIL: 97, DCGM_FI_DEV_POWER_USAGE: -5, DCGM_FI_DEV_GPU_TEMP: '64', evil: 1 }
  const report = parseGuestReport(line({ ...given, uuid: 'GPU-1"\n', name: 'x'.repeat(500) }))!
  expect(report.sshSessions).toBe(1)
  expect(report.gpus).toEqual([
    {
      uuid: '',
      name: 'x'.repeat(80),
      values: [97, null, null, null, null, null, null, null],
      recovery: null,
    },
  ])
  const many = parseGuestReport(JSON.stringify({ slipway_guest: 1, gpus: Array(100).fill({}) }))!
  expect(many).toMatchObject({ sshSessions: null, gpus: { length: 16 } })
  expect(parseGuestReport(line({ name: 'x'.repeat(maxReportBytes) }))).toBeNull()
  expect(parseGuestReport('{"slipway_guest":1,"gpus":{}}')).toBeNull()
})

test('whatever a guest writes, reading it never fails, and values stay in their bounds', () => {
  const check = (text: string) => {
    const report = lastReport(text)
    for (const value of report?.gpus.flatMap(({ values }) => values) ?? [])
      expect(value === null || (value >= 0 && value <= 1e12)).toBe(true)
  }
  fc.assert(fc.property(fc.string({ unit: 'binary' }), check), { seed: 1, numRuns: 200 })
  fc.assert(fc.property(fc.json(), check), { seed: 1, numRuns: 200 })
  const gpu = fc.dictionary(fc.constantFrom('uuid', 'name', 'DCGM_FI_DEV_GPU_UTIL'), fc.anything())
  fc.assert(
    fc.property(gpu, (given) => check(line(given))),
    { seed: 1, numRuns: 200 },
  )
})

test('errors in a report are bounded, and those that name no GPU are ignored', () => {
  const valid = { gpu: 1, xid: 79, position: 5 }
  const given = [valid, { gpu: 16, xid: 79, position: 1 }, { gpu: 0, xid: 0, position: 1 }, { xid: 31 }, null]
  const report = parseGuestReport(JSON.stringify({ slipway_guest: 1, gpus: [], xids: given }))!
  expect(report.xids).toEqual([{ gpuIndex: 1, xid: 79, position: 5 }])
  const flood = JSON.stringify({ slipway_guest: 1, gpus: [], xids: Array(200).fill(valid) })
  expect(parseGuestReport(flood)!.xids).toHaveLength(16)
})

test('the last valid line of a guest counts, even among garbage', () => {
  const good = line({ DCGM_FI_DEV_GPU_UTIL: 5 })
  expect(lastReport(`${line({ DCGM_FI_DEV_GPU_UTIL: 1 })}\n${good}\n`)).toMatchObject({
    gpus: [{ values: { 0: 5 } }],
  })
  expect(lastReport(`\0\xff{{{\n${good}\n{"cut`)).toMatchObject({ gpus: [{ values: { 0: 5 } }] })
  expect(lastReport('x'.repeat(10 * 2 ** 20))).toBeNull()
})

test('the reporter reads what nvidia-smi prints of a busy H200, and counts SSH sessions', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-guest-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'ports/vport2p1'), { recursive: true })
  writeFileSync(join(folder, 'ports/vport2p1/name'), `${guestPort}\n`)
  const fixture = join(import.meta.dirname, '../support/fixtures/gpu/h200-busy-nvidia-smi.xml')
  writeFileSync(join(folder, 'nvidia-smi'), `#!/bin/sh\ncat ${fixture}\n`)
  const log = [
    '[    1.000000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module',
    '[  120.500001] NVRM: Xid (PCI:0000:02:00): 79, pid=1234, GPU has fallen off the bus.',
    '[  121.000000] NVRM: Xid (PCI:0000:77:00): 31, pid=1234',
  ].join('\n')
  writeFileSync(join(folder, 'dmesg'), `#!/bin/sh\ncat <<'END'\n${log}\nEND\n`)
  for (const program of ['nvidia-smi', 'dmesg']) chmodSync(join(folder, program), 0o755)
  for (const [address, vendor] of [
    ['0000:01:00.0', '0x10de'],
    ['0000:01:01.0', '0x8086'],
    ['0000:02:00.0', '0x10de'],
  ] as const) {
    mkdirSync(join(folder, 'pci', address), { recursive: true })
    writeFileSync(join(folder, 'pci', address, 'vendor'), `${vendor}\n`)
    writeFileSync(join(folder, 'pci', address, 'class'), '0x030200\n')
  }
  const script = guestReporter
    .replaceAll('/sys/class/virtio-ports', `${folder}/ports`)
    .replaceAll('/sys/bus/pci/devices', `${folder}/pci`)
    .replaceAll('=/dev/', `=${folder}/`)
  const reporter = spawn('sh', ['-c', script], {
    env: { PATH: `${folder}:${process.env.PATH}` },
    detached: true,
    stdio: 'ignore',
  })
  onTestFinished(() => void process.kill(-reporter.pid!, 'SIGKILL'))
  const text = await eventually(() => {
    try {
      const written = readFileSync(join(folder, 'vport2p1'), 'utf8')
      return written.endsWith('\n') && written
    } catch {
      return false
    }
  })
  const report = parseGuestReport(text.trim())!
  expect(report.sshSessions).toBeGreaterThanOrEqual(0)
  expect(report.gpus).toEqual([
    {
      uuid: 'GPU-11111111-2222-3333-4444-555555555555',
      name: 'NVIDIA H200',
      values: [100, 41_971, 101_186, 64, 691.72, 1440, 0, 0],
      recovery: 'none',
    },
  ])
  expect(report.boot).toMatch(/^[0-9a-f-]{36}$/)
  expect(report.xids).toEqual([{ gpuIndex: 1, xid: 79, position: 120_500_001 }])
})

test('the reporter in the documentation equals the one in the mini guest', () => {
  expect(readFileSync(join(root, 'docs/operate/slipway-guest'), 'utf8')).toBe(guestReporter)
})

test('the metrics of Incus are added up for each VM', () => {
  const id = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
  const labels = (more: string) => `{${more}name="vm-${id}",project="slipway",type="virtual-machine"}`
  const text = [
    '# HELP incus_cpu_seconds_total The total number of CPU time used in seconds.',
    `incus_cpu_seconds_total${labels('cpu="0",mode="user",')} 12.5`,
    `incus_cpu_seconds_total${labels('cpu="0",mode="system",')} 2.5`,
    `incus_cpu_seconds_total${labels('cpu="0",mode="idle",')} 9000`,
    `incus_memory_MemTotal_bytes${labels('')} 1000`,
    `incus_memory_MemAvailable_bytes${labels('')} 400`,
    `incus_disk_read_bytes_total${labels('device="sda",')} 7`,
    `incus_disk_read_bytes_total${labels('device="sdb",')} 8`,
    `incus_network_receive_bytes_total${labels('device="lo",')} 999`,
    `incus_network_receive_bytes_total${labels('device="eth0",')} 1e+06`,
    'incus_cpu_seconds_total{name="other",project="default"} 5',
    'incus_operations_total 3',
  ].join('\n')
  expect(parseMetrics(text)).toEqual([
    {
      vmId: id,
      host: {
        slipway_vm_cpu_seconds_total: 15,
        slipway_vm_memory_bytes: 600,
        slipway_vm_disk_read_bytes_total: 15,
        slipway_vm_network_receive_bytes_total: 1_000_000,
      },
      guest: null,
    },
  ])
})
