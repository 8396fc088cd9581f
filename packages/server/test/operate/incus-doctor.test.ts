import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Launcher } from '@slipway/testing/launcher.ts'
import { afterAll, expect, test } from 'vitest'
import { hostFindings } from '../../src/engines/incus/operate/host-findings.ts'
import { overlapFinding } from '../../src/engines/incus/operate/server-findings.ts'
import { layOutSysfs } from '../support/sysfs-fixture.ts'

const launcher = new Launcher()
afterAll(() => launcher.clear())

const fileWith = (text: string) => {
  const file = join(mkdtempSync(join(launcher.dir, 'config-')), 'slipway.toml')
  writeFileSync(file, text)
  return file
}
const location = '[[location]]\nname = "gpu-a"\nengine = "incus"\n[location.incus]\n'
const nowhere = `${location}socket = "/nowhere/unix.socket"\n`

test('doctor reports that Incus is missing and how to install it, and fails', async () => {
  const { code, output, errors } = await launcher
    .start(['doctor', '--engine', 'incus', '--config', fileWith(nowhere)])
    .ended()
  expect(output).toMatch(
    /^problem +daemon +no Incus found at \/nowhere\/unix\.socket\n +→ apt-get install incus/m,
  )
  expect(output).toMatch(/^Problems: \d+\.$/m)
  expect([code, errors]).toEqual([1, ''])
})

test('doctor reports a missing certificate before it connects to any server', async () => {
  const files = 'client_cert_file = "/nowhere/c.crt"\nclient_key_file = "/nowhere/c.key"\n'
  const config = fileWith(`${location}urls = ["https://192.0.2.1:8443"]\n${files}`)
  const { code, output } = await launcher.start(['doctor', '--engine', 'incus', '--config', config]).ended()
  expect(output).toMatch(
    /^problem +certificate +the file \/nowhere\/c\.crt does not exist\n +→ slipway-server incus init/m,
  )
  expect(output).not.toContain('IOMMU')
  expect(code).toBe(1)
})

test.concurrent.each([
  [
    'doctor with an engine that it cannot check',
    ['doctor', '--engine', 'qemu'],
    /Usage: slipway-server doctor/,
    2,
  ],
  ['doctor with an unknown location', ['doctor', '--engine', 'incus', '--location', 'x-y'], /x-y/, 2],
  ['incus without a subcommand', ['incus'], /Usage: slipway-server incus init/, 2],
  ['join without an address', ['incus', 'join'], /Usage: slipway-server incus init/, 2],
  ['an address without a port', ['incus', 'init', '--address', '10.0.0.1'], /host and a port/, 2],
  ['init without a daemon', ['incus', 'init', '--socket', '/nowhere/unix.socket'], /does not respond/, 1],
  [
    'join without a daemon',
    ['incus', 'join', '--address', '10.0.0.2:8443', '--socket', '/nowhere/unix.socket'],
    /does not respond/,
    1,
  ],
])('%s fails, and the error states the reason', async (_name, args, reason, expected) => {
  const { code, errors } = await launcher.start(args).ended()
  expect(errors).toMatch(reason)
  expect(errors).not.toMatch(/^ +at /m)
  expect(code).toBe(expected)
})

test.concurrent.each([
  ['qemu', [], /^slipway: qemu-system-\S+ is not installed; install it with: apt-get install .+\n$/m],
  [
    'incus',
    ['--config', fileWith(nowhere)],
    /^slipway: no Incus found at .+; install it with apt-get install incus .+\n$/m,
  ],
])(
  'a start with %s on a machine without it prints one line that says what to install',
  async (engine, more, line) => {
    const args = ['--engine', engine, '--port', '0', '--data-dir', launcher.newDataDir(), ...more]
    const { code, output, errors } = await launcher.start(args, { env: { PATH: '/nowhere' } }).ended()
    expect(errors).toMatch(line)
    expect(output).not.toMatch(/"level":[4-6]0|stack/)
    expect(code).toBe(1)
  },
)

const verdicts = async (files: Parameters<typeof hostFindings>[0]) =>
  Object.fromEntries((await hostFindings(files, true)).map(({ step, verdict }) => [step, verdict]))

test('doctor reads IOMMU, GPUs, drivers and bridge filtering from the kernel of the host', async () => {
  const sys = await layOutSysfs('a100-80gb-8x-two-nodes')
  const proc = mkdtempSync(join(launcher.dir, 'proc-'))
  const programs = [join(proc, 'bin')]
  const bare = await verdicts({ sys, proc, programs })
  expect(bare).toMatchObject({ IOMMU: 'problem', 'bridge filtering': 'problem' })
  expect(bare).toMatchObject({ dnsmasq: 'problem', mkisofs: 'problem' })
  mkdirSync(join(sys, 'kernel/iommu_groups/1'), { recursive: true })
  mkdirSync(join(proc, 'sys/net/bridge'), { recursive: true })
  writeFileSync(join(proc, 'sys/net/bridge/bridge-nf-call-iptables'), '1\n')
  mkdirSync(programs[0]!)
  for (const program of ['dnsmasq', 'nft', 'mkisofs']) writeFileSync(join(programs[0]!, program), '')
  const ready = await verdicts({ sys, proc, programs })
  expect(new Set(Object.values(ready))).toEqual(new Set(['ok']))
})

test('doctor warns if another range overlaps one of our networks, but ignores overlaps among other ranges', () => {
  const bridge = (name: string, address: string, isOurs: boolean) => ({
    ...{ name, managed: true },
    config: { 'ipv4.address': address, ...(isOurs && { 'user.slipway.network': 'n' }) },
  })
  const apart = [bridge('sw1', '172.27.0.1/20', true), bridge('incusbr0', '10.5.0.1/24', false)]
  expect(overlapFinding(apart, [{ name: 'eth0', cidr: '10.5.0.9/24' }]).verdict).toBe('ok')
  expect(overlapFinding(apart, [{ name: 'sw1', cidr: '172.27.0.1/20' }]).verdict).toBe('ok')
  const docker = overlapFinding(apart, [{ name: 'br-docker', cidr: '172.27.3.1/16' }])
  expect(docker).toMatchObject({
    verdict: 'warning',
    text: expect.stringContaining('br-docker (172.27.3.1/16)'),
  })
})
