import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CompiledRule } from '../../src/domain/firewall.ts'
import { newHostKey } from '../../src/domain/guest/host-key.ts'
import type { Engine, VmSample, VmSpec } from '../../src/engines/engine.ts'
import { importImage } from '../../src/engines/qemu/index.ts'
import { cloudImage } from '../support/images/cloud-image.ts'
import { CACHE, makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { diskOf, specOf, wanted } from '../support/qemu-spec.ts'

const signal = AbortSignal.timeout(3_000_000)
const call = (generation: number) => ({ generation, signal })

const allowSsh: CompiledRule = {
  ...{ ruleId: 'ssh', action: 'allow', direction: 'ingress', protocols: ['tcp'], peers: ['0.0.0.0/0'] },
  ...{ sourcePorts: [], destinationPorts: [[22, 22]] },
}

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let image: VmSpec['image']
let hostName: string
let spec: VmSpec
const machineIds = new Set<string>()

beforeAll(async () => {
  bench = await makeBench()
  engine = await bench.open({ bootTimeoutS: 1_500, scale: 0.01 })
  let host = ''
  for await (const report of engine.inventory(signal)) host = report.name
  const file = await cloudImage(CACHE)
  const sha256 = execFileSync('sha256sum', [file], { encoding: 'utf8' }).split(' ')[0]!
  const source = await importImage(bench.dataDir, file, sha256, 'debian', 'qcow2', () => {})
  image = { name: 'debian:latest', source }
  hostName = host
}, 1_800_000)
afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 120_000)

test('the gpu image boots with UEFI, takes key, name and scripts from the seed, reports, runs containers, sees a disk, and shuts down', async () => {
  spec = specOf(bench, hostName, { name: 'cloud_guest', image, sshHostKey: newHostKey() })
  await engine.ensureVm(spec, wanted('on', [allowSsh]), call(1))
  const { sshDestination } = await until('running')
  const hostKey = spec.sshHostKey!.publicKey
  const inGuest = (command: string) => bench.ssh(sshDestination, command, { hostKey })
  // The SSH server of the guest may respond before cloud-init has written the key.
  await attempt(() => inGuest('true'))
  expect(await inGuest('cloud-init status --wait --long || true')).toContain('status: done')
  expect(await inGuest('hostname')).toBe('cloud-guest')
  expect(await inGuest('ls -d /sys/firmware/efi')).toBe('/sys/firmware/efi')
  expect(await inGuest('cat /root/made-by-startup')).toBe('yes')
  expect(await inGuest('ip -4 -o addr')).toContain(`inet ${spec.network.privateAddress}/20`)
  machineIds.add(await inGuest('cat /etc/machine-id'))

  const { guest } = await sampleWithReport()
  expect(guest).toMatchObject({ gpus: [], xids: [] })
  const files = '/usr/bin/echo $(ldd /usr/bin/echo | grep -o "/[^ ]*")'
  await inGuest(`tar -ch ${files} | docker import - tiny`)
  expect(await inGuest('docker run --rm --network none tiny /usr/bin/echo in a container')).toBe(
    'in a container',
  )

  const disk = diskOf(spec.host, { blockSize: 4096 })
  await engine.ensureDisk(disk, call(1))
  await engine.attachDisk(spec, disk, call(2))
  await attempt(async () => {
    expect(await inGuest('lsblk -dno SERIAL,LOG-SEC')).toMatch(new RegExp(`${disk.serialNumber} +4096`))
  })

  await engine.powerVm(spec, 'shutdown', call(3))
  await until('off')
  const { content } = await engine.serialLog(spec, undefined, signal)
  expect(content).toContain('startup script of cloud_guest')
  expect(content).toContain('shutdown script of cloud_guest')
  await engine.removeVm(spec, call(4))
  await engine.removeDisk(disk, call(2))
})

const cloudConfig = `#cloud-config
users:
  - name: ada
    shell: /bin/sh
write_files:
  - path: /etc/made-by-config
    content: "yes"
ssh_keys:
  ed25519_public: ssh-ed25519 AAAA
runcmd:
  - [sh, -c, "echo the configuration ran >/dev/console"]
`

test('the gpu image applies #cloud-config in addition to the required settings, and fills a larger OS disk', async () => {
  spec = specOf(bench, hostName, {
    ...{ name: 'configured', image, osDiskGib: 200, startupScript: cloudConfig, sshHostKey: newHostKey() },
  })
  await engine.ensureVm(spec, wanted('on', [allowSsh]), call(1))
  const { sshDestination } = await until('running')
  const hostKey = spec.sshHostKey!.publicKey
  const inGuest = (command: string) => bench.ssh(sshDestination, command, { hostKey })
  await attempt(() => inGuest('true'))
  expect(await inGuest('cloud-init status --wait --long || true')).toContain('status: done')
  expect(await inGuest('cat /etc/made-by-config')).toBe('yes')
  expect(await inGuest('id -un ada')).toBe('ada')
  expect(Number(await inGuest('df --output=size -BG / | tail -1 | tr -dc 0-9'))).toBeGreaterThan(190)
  const { content } = await engine.serialLog(spec, undefined, signal)
  expect(content).toContain('the configuration ran')
  machineIds.add(await inGuest('cat /etc/machine-id'))
  expect(machineIds.size).toBe(2)

  // The seed no longer contains the host key, but the guest still has it.
  spec = { ...spec, isNew: false, sshHostKey: { publicKey: hostKey, privateKey: '' } }
  await engine.powerVm(spec, 'shutdown', call(2))
  await until('off')
  await engine.ensureVm(spec, wanted('on', [allowSsh], 2), call(3))
  await until('running')
  await attempt(async () => expect(await inGuest('hostname')).toBe('configured'))
  await engine.removeVm(spec, call(4))
})

async function until(power: string) {
  for (;;) {
    const status = await engine.inspectVm(spec, signal)
    if (status?.power === power) return status
    if (status?.power === 'crashed') throw new Error(status.detail)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

async function sampleWithReport(): Promise<VmSample> {
  for (;;) {
    for await (const sample of engine.sample(signal))
      if (sample.vmId === spec.id && sample.guest) return sample
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

async function attempt(check: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await check()
      return
    } catch (error) {
      if (tries === 60) throw error
      await new Promise((resolve) => setTimeout(resolve, 2_000))
    }
  }
}
