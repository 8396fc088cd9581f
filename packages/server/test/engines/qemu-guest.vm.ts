import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Program, startProgram } from '@slipway/testing/program.ts'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CompiledRule } from '../../src/domain/firewall.ts'
import { newHostKey } from '../../src/domain/guest/host-key.ts'
import type { Engine, VmSpec, VmStatus } from '../../src/engines/engine.ts'
import { probeSsh } from '../../src/engines/qemu/forwarder/ssh-probe.ts'
import { canShareVolumes, makeBench, makeKey, type QemuBench } from '../support/qemu-bench.ts'
import { diskOf, specOf, wanted } from '../support/qemu-spec.ts'

const WITHIN = { timeout: 300_000 }
const signal = AbortSignal.timeout(900_000)
/** Waits for a question on the shared volume and answers it there. */
const answerOnVolume = `mkdir -p /mnt/shared
(
  until mount -t virtiofs shared-1 /mnt/shared; do sleep 1; done
  until [ -s /mnt/shared/question ]; do sleep 1; done
  echo "two has read: $(cat /mnt/shared/question)" > /mnt/shared/answer.new
  mv /mnt/shared/answer.new /mnt/shared/answer
  umount /mnt/shared
) >/dev/null 2>&1 &
`

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let host: string
let first: VmSpec
let second: VmSpec
let otherKeyFile: string
let generation = 1
let firewallGeneration = 1
const next = () => ({ generation: ++generation, signal })

beforeAll(async () => {
  bench = await makeBench()
  const setup = await bench.open()
  for await (const report of setup.inventory(signal)) host = report.name
  await setup.close()
  otherKeyFile = join(bench.dataDir, 'other-key')
  first = specOf(bench, host, {
    name: 'guest-one',
    sshPublicKeys: [bench.sshPublicKey, await makeKey(otherKeyFile)],
    sshHostKey: newHostKey(),
    scratchGb: 960,
    // A script without an interpreter line is run by a shell.
    startupScript: 'echo startup script of guest-one\necho yes > /root/made-by-startup\n',
  })
  second = specOf(bench, host, { name: 'guest-two' })
  second.network = { ...second.network, networkId: first.network.networkId, publicAddress: '' }
}, 300_000)

afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

test('a qemu guest survives the server that started it, and the next server adopts it', WITHIN, async () => {
  const child = await startServerChild()
  const before = await qemuProcesses()
  expect(before).toHaveLength(1)
  await child.end('SIGKILL')
  engine = await bench.open()
  expect((await status(first))?.power).toMatch(/booting|running/)
  await engine.ensureVm(first, wanted('on', [], 0), { generation: 1, signal })
  expect((await qemuProcesses()).map(({ pid }) => pid)).toEqual(before.map(({ pid }) => pid))
  await until(first, 'running')
})

test('a qemu guest accepts only the owners of its keys', WITHIN, async () => {
  expect(await inFirst('hostname')).toBe('guest-one')
  expect(await bench.ssh(await destination(), 'hostname', { keyFile: otherKeyFile })).toBe('guest-one')
  const stranger = join(bench.dataDir, 'stranger')
  await makeKey(stranger)
  await expect(bench.ssh(await destination(), 'true', { keyFile: stranger })).rejects.toThrow(
    /denied|publickey/i,
  )
})

test(
  'a qemu guest is verified by its host key at the first connection, and a different key is rejected',
  WITHIN,
  async () => {
    const { publicKey } = first.sshHostKey!
    expect(await bench.ssh(await destination(), 'hostname', { hostKey: publicKey })).toBe('guest-one')
    const other = newHostKey().publicKey
    await expect(bench.ssh(await destination(), 'hostname', { hostKey: other })).rejects.toThrow(
      /Host key verification failed/,
    )
    const met = async (hostKey: string) =>
      probeSsh(connect({ host: bench.publicAddress, port: await publicSshPort() }), 20_000, hostKey)
    expect(await met(publicKey)).toBe('greeted')
    expect(await met(other)).toBe('stranger')
  },
)

test('the private host key of a qemu guest exists only in the guest once it has booted', WITHIN, async () => {
  const folder = join(bench.dataDir, 'qemu/local-a/vms', first.id)
  const secret = Buffer.from(first.sshHostKey!.privateKey, 'base64')
  const isKept = async (name: string) => {
    const content = await readFile(join(folder, name))
    return content.includes(secret) || content.includes(secret.toString('base64').slice(0, 40))
  }
  await eventually(async () => {
    expect(await isKept('seed.iso')).toBe(false)
    expect(await isKept('vm.json')).toBe(false)
  })
  first.sshHostKey = { ...first.sshHostKey!, privateKey: '' }
})

test('a qemu guest has the local disk of its type, empty and of the promised size', WITHIN, async () => {
  const device = await findBySerial('slipway-scratch')
  expect(await inFirst(`cat /sys/block/${device}/size`)).toBe(String((960 * 1024 ** 3) / 512))
  expect(await inFirst(`head -c 4096 /dev/${device} | tr -d '\\0' | wc -c`)).toBe('0')
})

test('a qemu guest ran its startup script', WITHIN, async () => {
  await eventually(async () => expect(await inFirst('cat /root/made-by-startup')).toBe('yes'))
  const log = await engine.serialLog(first, undefined, signal)
  expect(log.content).toContain('startup script of guest-one')
})

test('a qemu guest has outbound access only where its location allows it', WITHIN, async () => {
  const service = createServer((socket) => socket.end('hello-from-host')).listen(0, '127.0.0.1')
  await once(service, 'listening')
  const { port } = service.address() as AddressInfo
  const call = `nc -w 5 100.127.255.2 ${port} </dev/null`
  const metadata = `nc -w 5 169.254.169.254 ${port} </dev/null 2>&1 || echo no way`
  // A busy machine may respond slowly, so the guest repeats the request until it gets a response.
  const ask = `until said=$(${call}) && [ -n "$said" ]; do sleep 1; done`
  second.startupScript = `#!/bin/sh\n${ask}\necho "the host says: $said"\necho "metadata: $(${metadata})"\n${answerOnVolume}`
  expect(await inFirst(`${call} 2>/dev/null || echo closed`)).toBe('closed')
  // Only one engine may run at a time, because each applies its own configuration to all VMs of its host.
  await engine.close()
  const open = await bench.open({ egress: 'user', egressAllow: ['127.0.0.1/32'] })
  const out: CompiledRule = { ...allow(['0.0.0.0/0'], port), direction: 'egress' }
  await open.ensureVm(second, wanted('on', [out]), { generation: 1, signal })
  await eventually(async () => {
    const { content } = await open.serialLog(second, undefined, signal)
    expect(content).toContain('the host says: hello-from-host')
    expect(content).toMatch(/metadata: .*no way/s)
  })
  await open.close()
  engine = await bench.open()
  service.close()
})

test(
  'a qemu guest sees an attached disk with its sector size and serial number, and keeps what it writes',
  WITHIN,
  async () => {
    const disk = diskOf(host, { blockSize: 4096 })
    const readOnly = diskOf(host, { mode: 'read-only' })
    for (const each of [readOnly, disk]) {
      await engine.ensureDisk(each, { generation: 1, signal })
      await engine.attachDisk(first, each, next())
    }
    const device = await findBySerial(disk.serialNumber)
    expect(await inFirst(`cat /sys/block/${device}/queue/logical_block_size`)).toBe('4096')
    const other = await findBySerial(readOnly.serialNumber)
    expect(await inFirst(`cat /sys/block/${other}/ro /sys/block/${other}/queue/logical_block_size`)).toBe(
      '1\n512',
    )
    await engine.detachDisk(first, readOnly, next())
    await engine.removeDisk(readOnly, { generation: 2, signal })
    expect(await inFirst(`ls -d /sys/block/${other} 2>/dev/null || echo gone`)).toBe('gone')
    first.disks = [disk]
    await engine.growDisk({ ...disk, sizeGib: 2 }, { generation: 2, signal })
    await eventually(async () =>
      expect(await inFirst(`cat /sys/block/${device}/size`)).toBe(String((2 * 1024 ** 3) / 512)),
    )
    await inFirst(`echo kept-on-data-disk | dd of=/dev/${device} bs=4096 conv=sync 2>/dev/null; sync`)
    await inFirst('echo kept-on-os-disk > /root/note; sync')
  },
)

test('two qemu guests can share a volume', { ...WITHIN, skip: !canShareVolumes }, async () => {
  const volume = diskOf(host, {
    type: 'shared-volume',
    sizeGib: 1024,
    blockSize: 0,
    serialNumber: 'shared-1',
  })
  await engine.ensureDisk(volume, { generation: 1, signal })
  await engine.attachDisk(first, volume, next())
  await engine.attachDisk(second, volume, { generation: 1, signal })
  await eventually(async () => {
    await inFirst('mkdir -p /mnt/shared && mount -t virtiofs shared-1 /mnt/shared')
  })
  await inFirst('echo from one > /mnt/shared/question')
  await eventually(async () => expect(await inFirst('cat /mnt/shared/answer')).toBe('two has read: from one'))
  await inFirst('umount /mnt/shared')
  const share = join(bench.dataDir, 'qemu/local-a/disks', volume.id, 'share')
  expect(await readFile(join(share, 'question'), 'utf8')).toBe('from one\n')
  await Promise.all([
    engine.detachDisk(first, volume, next()),
    engine.detachDisk(second, volume, { generation: 1, signal }),
  ])
  await engine.removeDisk(volume, { generation: 2, signal })
})

test('a qemu guest opens and closes a port for one source and not for another', WITHIN, async () => {
  await inFirst('(while true; do echo hello-from-guest | nc -l -p 8080; done) >/dev/null 2>&1 &')
  const ssh = allow(['0.0.0.0/0'], 22)
  expect(await reads(8080, '127.0.0.1')).toBe('')
  await apply([ssh, allow(['127.0.0.1/32'], 8080)])
  await eventually(async () => expect(await reads(8080, '127.0.0.1')).toContain('hello-from-guest'))
  expect(await reads(8080, '127.0.0.2')).toBe('')
  await apply([ssh, allow(['127.0.0.0/8'], 8080), { ...allow(['127.0.0.1/32'], 8080), action: 'deny' }])
  expect(await reads(8080, '127.0.0.1')).toBe('')
  await eventually(async () => expect(await reads(8080, '127.0.0.2')).toContain('hello-from-guest'))
})

test(
  'an open connection to a qemu guest is closed when the rule that allowed it is removed',
  WITHIN,
  async () => {
    const socket = await openSsh()
    const closed = new Promise((done) => socket.once('close', done))
    await apply([])
    await closed
    await expect(openSsh()).rejects.toThrow()
    await apply([allow(['0.0.0.0/0'], 22)])
    ;(await openSsh()).destroy()
  },
)

test('a qemu guest is reachable again after its forwarder was killed', WITHIN, async () => {
  const forwarder = (await bench.processes()).find(({ commandLine }) =>
    commandLine.includes('qemu-forwarder'),
  )
  process.kill(forwarder!.pid, 'SIGKILL')
  await eventually(async () => {
    ;(await openSsh()).destroy()
  })
})

test('a qemu guest can reach another guest of its network that has no public address', WITHIN, async () => {
  expect((await until(second, 'running')).sshDestination).toBe('')
  await eventually(async () =>
    expect(await inFirst(`ping -c 1 -W 2 ${second.network.privateAddress}`)).toContain('1 packets received'),
  )
})

test(
  'a qemu guest is reported as crashed when its QEMU dies, and starts again on reset',
  WITHIN,
  async () => {
    const qemu = (await qemuProcesses()).find(({ commandLine }) => commandLine.includes(second.id))
    process.kill(qemu!.pid, 'SIGKILL')
    const crashed = await until(second, 'crashed')
    expect(crashed.detail).toContain('137')
    await engine.powerVm(second, 'reset', { generation: 2, signal })
    expect((await status(second))?.power).toBe('booting')
    await engine.powerVm(second, 'off', { generation: 3, signal })
    expect((await status(second))?.power).toBe('off')
  },
)

test(
  'a qemu guest runs its shutdown script when stopped, and keeps its data for the next start',
  WITHIN,
  async () => {
    await engine.powerVm(first, 'shutdown', next())
    await until(first, 'off')
    expect((await engine.serialLog(first, undefined, signal)).content).toContain(
      'shutdown script of guest-one',
    )
    await engine.ensureVm(first, wanted('on', [], 0), next())
    await until(first, 'running')
    expect(await inFirst('cat /root/note')).toBe('kept-on-os-disk')
    const device = await findBySerial(first.disks[0]!.serialNumber)
    expect(await inFirst(`head -c 17 /dev/${device}`)).toBe('kept-on-data-disk')
  },
)

test('a qemu guest leaves no process, file, socket or port behind when it is removed', WITHIN, async () => {
  const sshPort = await publicSshPort()
  await engine.removeVm(first, next())
  await engine.removeVm(second, { generation: 9, signal })
  await engine.removeDisk(first.disks[0]!, { generation: 9, signal })
  expect(await qemuProcesses()).toEqual([])
  const state = join(bench.dataDir, 'qemu/local-a')
  expect(readdirSync(join(state, 'vms'))).toEqual([])
  expect(readdirSync(join(state, 'disks'))).toEqual([])
  await expect(openSsh(sshPort)).rejects.toThrow(/ECONNREFUSED/)
  await engine.close()
  await eventually(async () => expect(await bench.processes()).toEqual([]))
  expect(readdirSync(state).filter((name) => name.endsWith('.sock'))).toEqual([])
})

async function startServerChild(): Promise<Program> {
  const program = join(bench.dataDir, 'child.mjs')
  await build({
    entryPoints: [join(import.meta.dirname, '../support/qemu-server-child.ts')],
    ...{ outfile: program, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' },
  })
  const options = {
    ...{ dataDir: bench.dataDir, location: 'local-a', scale: 0.002, addressRange: '127.100.0.0/16' },
    ...{ egress: 'none', egressAllow: [], gpus: [{ model: 'A100 80GB PCIe', count: 8 }], bootTimeoutS: 300 },
    forwarderProgram: bench.forwarderProgram,
  }
  const input = join(bench.dataDir, 'child.json')
  const rules = [allow(['0.0.0.0/0'], 22)]
  await writeFile(input, JSON.stringify({ options, spec: first, rules }))
  const child = startProgram(process.execPath, [program, input])
  await child.line('started')
  return child
}

async function apply(rules: CompiledRule[]): Promise<void> {
  await engine.applyFirewall(first, rules, { generation: ++firewallGeneration, signal })
}

async function destination(): Promise<string> {
  return (await status(first))!.sshDestination
}

async function inFirst(command: string): Promise<string> {
  return bench.ssh(await destination(), command)
}

function status(spec: VmSpec): Promise<VmStatus | null> {
  return engine.inspectVm(spec, signal)
}

async function until(spec: VmSpec, power: VmStatus['power']): Promise<VmStatus> {
  for (;;) {
    const seen = await status(spec)
    if (seen?.power === power) return seen
    if (seen?.power === 'crashed') throw new Error(seen.detail)
    await sleep(100)
  }
}

async function findBySerial(serial: string): Promise<string> {
  let device = ''
  await eventually(async () => {
    device = await inFirst(
      `for d in /sys/block/vd*; do [ "$(cat $d/serial)" = ${serial} ] && basename $d; done; true`,
    )
    expect(device).not.toBe('')
  })
  return device
}

async function qemuProcesses() {
  return (await bench.processes()).filter(({ commandLine }) => /^qemu-system/.test(commandLine))
}

/** Returns the first text that a service of the first guest sends to a client at `source`; '' if it is not allowed. */
async function reads(port: number, source: string): Promise<string> {
  const socket = connect({ host: bench.publicAddress, port, localAddress: source })
  const received: Buffer[] = []
  socket.on('data', (chunk) => received.push(chunk))
  socket.on('error', () => {})
  const timer = setTimeout(() => socket.destroy(), 3_000)
  await new Promise((done) => socket.on('close', done))
  clearTimeout(timer)
  return Buffer.concat(received).toString()
}

async function publicSshPort(): Promise<number> {
  return Number((await destination()).split(':')[1] ?? 22)
}

/** Opens a connection to the guest, and waits for the greeting of its SSH server. */
async function openSsh(knownPort?: number): Promise<Socket> {
  const port = knownPort ?? (await publicSshPort())
  const socket = connect({ host: bench.publicAddress, port })
  await new Promise((done, fail) => {
    socket.once('data', done)
    socket.on('error', fail)
    socket.once('close', () => fail(new Error('closed without a greeting')))
  })
  return socket
}

function allow(peers: string[], port: number): CompiledRule {
  return {
    ...{ ruleId: randomUUID(), action: 'allow', direction: 'ingress', protocols: ['tcp'], peers },
    ...{ sourcePorts: [], destinationPorts: [[port, port]] },
  }
}

/** Retries until it succeeds. Only the test's own time limit applies. */
async function eventually(check: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await check()
      return
    } catch (error) {
      if (signal.aborted) throw error
      await sleep(200)
    }
  }
}
