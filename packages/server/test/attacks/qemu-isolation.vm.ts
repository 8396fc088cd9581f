import { execFileSync, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readFile, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine, HostReport, VmSpec } from '../../src/engines/engine.ts'
import { hungImage, makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { diskOf, specOf, wanted } from '../support/qemu-spec.ts'

/** VMs are isolated if the server runs as root; otherwise the host record says what is missing. Tests both cases. */
const isRoot = process.getuid?.() === 0
const signal = AbortSignal.timeout(600_000)
const call = (generation = 1) => ({ generation, signal })
const firstUid = 0x7000_0000

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let host: HostReport
let victim: VmSpec
let hostile: VmSpec
const disk = () => victim.disks[0]!

beforeAll(async () => {
  process.env.SLIPWAY_TEST_SECRET = 'sk_live_secret'
  bench = await makeBench()
  const image = await hungImage(bench)
  engine = await bench.open()
  for await (const report of engine.inventory(signal)) host = report
  victim = specOf(bench, host.name, { image, disks: [diskOf(host.name)] })
  hostile = specOf(bench, host.name, { image })
  hostile.network.publicAddress = ''
  await engine.ensureDisk(disk(), call())
  for (const vm of [victim, hostile]) {
    await engine.ensureVm(vm, wanted('on'), call())
  }
}, 300_000)
afterAll(async () => {
  for (const vm of [victim, hostile]) await engine?.removeVm(vm, call(9))
  await engine?.close()
  await bench?.close()
  delete process.env.SLIPWAY_TEST_SECRET
}, 60_000)

/** Returns the only group that a VM needs: that of /dev/kvm, if not all users can access the device. */
async function kvmGroup(): Promise<string> {
  const { mode, gid } = await stat('/dev/kvm').catch(() => ({ mode: 0, gid: 0 }))
  const isForGroup = (mode & 0o006) !== 0o006 && (mode & 0o060) === 0o060
  return isForGroup && gid !== 0 ? String(gid) : ''
}

test('a VM runs as its own unprivileged user, or the host record says that it does not', async () => {
  const uids = [await statusOf(victim), await statusOf(hostile)].map((status) => status.Uid!.split('\t'))
  for (const uid of uids) expect(new Set(uid).size).toBe(1)
  if (!isRoot) {
    expect(uids.flat()).toEqual(Array(8).fill(String(process.getuid?.())))
    expect(host.capabilities.not_isolated).toContainEqual(expect.stringMatching(/^user: /))
    return
  }
  expect(uids[0]).not.toEqual(uids[1])
  for (const [uid] of uids) expect(Number(uid)).toBeGreaterThanOrEqual(firstUid)
  expect(host.capabilities.isolation).toMatchObject({ own_user: true })
  expect(await statusOf(victim)).toMatchObject({
    ...{ CapEff: '0000000000000000', CapPrm: '0000000000000000', CapBnd: '0000000000000000' },
    ...{ NoNewPrivs: '1', Seccomp: '2', Groups: await kvmGroup() },
  })
})

test('a VM has its own limits and namespaces exactly where the host record says so', async () => {
  const { own_cgroup, own_namespaces } = host.capabilities.isolation as {
    own_cgroup: boolean
    own_namespaces: string[]
  }
  const pid = await pidOf(victim)
  const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8')
  expect(groups.includes(victim.id)).toBe(own_cgroup)
  for (const [name, file] of Object.entries({ mount: 'mnt', net: 'net', ipc: 'ipc' })) {
    const isOwn = (await readlink(`/proc/${pid}/ns/${file}`)) !== (await readlink(`/proc/self/ns/${file}`))
    expect([name, isOwn]).toEqual([name, own_namespaces.includes(name)])
  }
  const notIsolated = host.capabilities.not_isolated as string[]
  expect(notIsolated.some((line) => line.startsWith('cgroup: '))).toBe(!own_cgroup)
  expect(notIsolated.some((line) => line.startsWith('network: '))).toBe(!own_namespaces.includes('net'))
})

test('the process that serves a shared volume has the limits of its VM where the host record says so', async () => {
  const volume = diskOf(host.name, { type: 'shared-volume', sizeGib: 1024, blockSize: 0 })
  await engine.ensureDisk(volume, call())
  await engine.attachDisk(victim, volume, call())
  const servers = (await bench.processes()).filter(({ commandLine }) =>
    /virtiofsd.*--socket-path/.test(commandLine),
  )
  expect(servers).not.toEqual([])
  const { own_cgroup } = host.capabilities.isolation as { own_cgroup: boolean }
  for (const { pid } of servers)
    expect((await readFile(`/proc/${pid}/cgroup`, 'utf8')).includes(victim.id)).toBe(own_cgroup)
  const notIsolated = host.capabilities.not_isolated as string[]
  expect(notIsolated.some((line) => line.startsWith('volumes: '))).toBe(!isRoot)
  await engine.detachDisk(victim, volume, call())
  await engine.removeDisk(volume, call(2))
})

test('a VM opens no port on the host through which a local user could bypass the firewall', async () => {
  const pid = await pidOf(victim)
  for (const table of ['tcp', 'tcp6', 'udp']) {
    const inodes = (await readFile(`/proc/${pid}/net/${table}`, 'utf8')).split('\n').slice(1)
    const own = new Set(await socketInodes(pid))
    expect(inodes.filter((line) => own.has(line.trim().split(/\s+/)[9] ?? ''))).toEqual([])
  }
  const { mode, uid } = await stat(join(folderOf(victim), 'sockets'))
  expect([mode & 0o777, uid]).toEqual([0o700, process.getuid?.()])
})

test('the environment of a VM process reveals nothing about the server', async () => {
  const environment = await readFile(`/proc/${await pidOf(victim)}/environ`, 'utf8')
  expect(environment).not.toContain('sk_live_secret')
})

test('a compromised QEMU process cannot access other VMs or create links in folders that the server reads', async () => {
  const uid = Number((await statusOf(hostile)).Uid!.split('\t')[0])
  const as = (script: string) =>
    spawnSync('/bin/sh', ['-c', script], { cwd: folderOf(hostile), ...(isRoot && { uid, gid: uid }) }).status
  // Without separate users, VMs are isolated only as far as the record says. This is the risk that the record warns
  // about.
  const expected = isRoot ? expect.not.toSatisfy((status) => status === 0) : 0
  expect(as('cat os.qcow2 >/dev/null')).toBe(0)
  expect(as(`cat '${folderOf(victim)}/os.qcow2' >/dev/null`)).toEqual(expected)
  expect(as(`cat ../${victim.id}/os.qcow2 >/dev/null`)).toEqual(expected)
  expect(as(`cat ../../disks/${disk().id}/data.qcow2 >/dev/null`)).toEqual(expected)
  expect(as('cat vm.json >/dev/null')).toEqual(expected)
  expect(as('ln -s /etc/shadow link && rm link')).toEqual(expected)
  expect(as('cp serial.log new && rm new')).toEqual(expected)
  expect(as('ls sockets/qmp.sock')).toEqual(expected)
})

test('a server without root reports which isolation measures are missing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-nobody-'))
  try {
    const program = join(folder, 'find.mjs')
    await build({
      stdin: {
        contents: `import { Isolation } from './isolation.ts'
          console.log(JSON.stringify((await Isolation.find('local-a', [])).notIsolated))`,
        resolveDir: join(import.meta.dirname, '../../src/engines/qemu/process'),
      },
      ...{ outfile: program, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' },
    })
    await chmod(folder, 0o755)
    const nobody = isRoot ? { uid: 65_534, gid: 65_534 } : {}
    const output = execFileSync(process.execPath, [program], { encoding: 'utf8', cwd: '/', ...nobody })
    const missing = (JSON.parse(output) as string[]).map((line) => line.split(':')[0])
    expect(missing).toEqual(['user', 'cgroup', 'mounts', 'volumes', 'network'])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

const folderOf = (vm: VmSpec) => join(bench.dataDir, 'qemu/local-a/vms', vm.id)

async function pidOf(vm: VmSpec): Promise<number> {
  return Number(await readFile(join(folderOf(vm), 'qemu.pid'), 'utf8'))
}

async function statusOf(vm: VmSpec): Promise<Record<string, string>> {
  const status = await readFile(`/proc/${await pidOf(vm)}/status`, 'utf8')
  return Object.fromEntries(status.split('\n').map((line) => line.split(/:\t?/).map((part) => part.trim())))
}

async function socketInodes(pid: number): Promise<string[]> {
  const links = execFileSync('sh', ['-c', `readlink /proc/${pid}/fd/*`], { encoding: 'utf8' })
  return [...links.matchAll(/socket:\[(\d+)\]/g)].map((match) => match[1]!)
}
