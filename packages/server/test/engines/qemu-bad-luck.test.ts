import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, existsSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Engine, VmSpec } from '../../src/engines/engine.ts'
import { hostArchitecture } from '../../src/engines/qemu/architecture.ts'
import { importImage } from '../../src/engines/qemu/index.ts'
import { canShareVolumes, deafImage, makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { diskOf, specOf, wanted } from '../support/qemu-spec.ts'

const WITHIN = { timeout: 240_000 }
const signal = AbortSignal.timeout(600_000)
const call = (generation = 1) => ({ generation, signal })

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let host: string
let deaf: QemuBench['image']

beforeAll(async () => {
  bench = await makeBench()
  deaf = await deafImage(bench)
  engine = await bench.open()
  for await (const report of engine.inventory(signal)) host = report.name
}, 300_000)
afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

test('the qemu engine says what to install when QEMU is absent', WITHIN, async () => {
  await expect(bench.open({ qemuProgram: 'qemu-system-nowhere' })).rejects.toThrow(
    /qemu-system-nowhere is not installed; install it with: apt-get install qemu-system-/,
  )
})

test('the qemu engine says when QEMU is too old', WITHIN, async () => {
  const old = join(bench.dataDir, 'old-qemu')
  await writeFile(old, '#!/bin/sh\necho QEMU emulator version 6.2.0\n')
  await chmod(old, 0o755)
  await expect(bench.open({ qemuProgram: old })).rejects.toThrow(/QEMU 6.2 is too old; 7.2 or later/)
})

test('the qemu engine names a missing image and refuses a corrupt one', WITHIN, async () => {
  const images = join(bench.dataDir, 'qemu/images')
  const folder = String(bench.image.source.folder)
  const missing = { name: 'gone', source: { ...bench.image.source, folder: 'nowhere' } }
  await expect(
    engine.ensureVm(specOf(bench, host, { image: missing }), wanted('off'), call()),
  ).rejects.toMatchObject({
    kind: 'missing',
  })
  const corrupt = join(images, 'corrupt-copy')
  await cp(join(images, folder), corrupt, { recursive: true })
  await writeFile(join(corrupt, 'initrd'), 'not an initramfs')
  const image = { name: 'corrupt', source: { ...bench.image.source, folder: 'corrupt-copy' } }
  const failure = expect(engine.ensureVm(specOf(bench, host, { image }), wanted('off'), call()))
  await failure.rejects.toMatchObject({ kind: 'rejected', message: expect.stringContaining('checksum') })
  await rm(corrupt, { recursive: true })
  expect(await readdir(join(bench.dataDir, 'qemu/local-a/vms'))).toEqual([])
})

test(
  'the qemu engine imports an image with the right checksum only, and none that points elsewhere',
  WITHIN,
  async () => {
    const file = join(bench.dataDir, 'cloud.qcow2')
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', file, '2G'])
    const sha256 = (path: string) => execFileSync('sha256sum', [path], { encoding: 'utf8' }).split(' ')[0]!
    const wrong = importImage(bench.dataDir, file, '0'.repeat(64), 'cloud', () => {})
    await expect(wrong).rejects.toMatchObject({ kind: 'rejected' })
    const source = await importImage(bench.dataDir, file, sha256(file), 'cloud', () => {})
    expect(source).toMatchObject({ kind: 'disk', format: 'qcow2', virtualSizeGib: 2 })
    await rm(join(bench.dataDir, 'qemu/images', source.file))

    const shop = createHttpServer((request, response) => {
      if (request.url === '/cloud.qcow2') createReadStream(file).pipe(response)
      else response.writeHead(404).end()
    }).listen(0, '127.0.0.1')
    await once(shop, 'listening')
    const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`
    const wrongFile = importImage(bench.dataDir, `${url}/else`, sha256(file), 'cloud', () => {})
    await expect(wrongFile).rejects.toThrow(/answered 404/)
    const wrongSum = importImage(bench.dataDir, `${url}/cloud.qcow2`, '0'.repeat(64), 'cloud', () => {})
    await expect(wrongSum).rejects.toThrow(/has SHA-256/)
    expect(await importImage(bench.dataDir, `${url}/cloud.qcow2`, sha256(file), 'cloud', () => {})).toEqual(
      source,
    )
    await rm(join(bench.dataDir, 'qemu/images', source.file))
    shop.close()

    const pointing = join(bench.dataDir, 'pointing.qcow2')
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', pointing])
    const refused = importImage(bench.dataDir, pointing, sha256(pointing), 'pointing', () => {})
    await expect(refused).rejects.toThrow(/refers to another file/)
  },
)

test('the qemu engine moves SSH to 2222 where 22 is taken, and says so when both are', WITHIN, async () => {
  const spec = await defined()
  const blockers = [await occupy(22)]
  await engine.ensureVm(spec, wanted('on'), call())
  expect((await engine.inspectVm(spec, signal))?.sshDestination).toBe(`root@${bench.publicAddress}:2222`)
  await engine.powerVm(spec, 'off', call(2))
  blockers.push(await occupy(2222))
  await expect(engine.ensureVm(spec, wanted('on'), call(3))).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('EADDRINUSE'),
  })
  for (const blocker of blockers) blocker.close()
  await engine.ensureVm(spec, wanted('on'), call(3))
  expect((await engine.inspectVm(spec, signal))?.sshDestination).toBe(`root@${bench.publicAddress}`)
  await engine.removeVm(spec, call(4))
})

test(
  'the qemu engine reports a guest that never answers, with the last words of its console',
  WITHIN,
  async () => {
    const impatient = await opened({ bootTimeoutS: 4 })
    const spec = await defined({ image: deaf })
    await impatient.ensureVm(spec, wanted('on'), call())
    for (;;) {
      const status = await impatient.inspectVm(spec, signal)
      if (status?.power === 'crashed') {
        expect(status.detail).toMatch(/no SSH answer within 4 s.*console ends with/s)
        break
      }
      expect(status?.power).toBe('booting')
      await sleep(200)
    }
    await engine.removeVm(spec, call(2))
  },
)

test(
  'the qemu engine gives up on a QEMU that does not answer, and still pulls its plug',
  WITHIN,
  async () => {
    const spec = await defined()
    await engine.ensureVm(spec, wanted('on'), call())
    const qemu = (await bench.processes()).find(({ commandLine }) => commandLine.startsWith('qemu-system'))!
    process.kill(qemu.pid, 'SIGSTOP')
    const impatient = await opened({ qmpTimeoutMs: 1_000 })
    await expect(impatient.powerVm(spec, 'reset', call(2))).rejects.toMatchObject({ kind: 'unavailable' })
    await engine.powerVm(spec, 'off', call(3))
    expect((await engine.inspectVm(spec, signal))?.power).toBe('off')
    await engine.removeVm(spec, call(4))
  },
)

/** A guest that powered off, whose keeper has not written down yet how its QEMU ended. */
async function poweredOffUnnoted(): Promise<{ spec: VmSpec; keeper: number }> {
  const spec = await defined({ image: deaf })
  await engine.ensureVm(spec, wanted('on'), call())
  const pidOf = async (program: string) =>
    (await bench.processes()).find(
      ({ commandLine }) => commandLine.startsWith(program) && commandLine.includes(spec.id),
    )?.pid
  const keeper = (await pidOf('/bin/sh'))!
  process.kill(keeper, 'SIGSTOP')
  // As when the guest powers off, QEMU ends with 0.
  process.kill((await pidOf('qemu-system'))!, 'SIGTERM')
  while (await pidOf('qemu-system')) await sleep(20)
  return { spec, keeper }
}

test(
  'a qemu guest is off when another process put the papers of its end away while we looked',
  WITHIN,
  async () => {
    const { spec, keeper } = await poweredOffUnnoted()
    // An engine that is closed goes no rounds: whoever reads the VM's files there is the look.
    const other = await bench.open({ location: 'local-b' })
    let otherHost = ''
    for await (const report of other.inventory(signal)) otherHost = report.name
    await other.close()
    const folder = join(bench.dataDir, 'qemu/local-a/vms', spec.id)
    const aside = join(bench.dataDir, 'qemu/local-b/vms', spec.id)
    await mkdir(dirname(aside), { recursive: true })
    await rename(folder, aside)
    const keeperFile = join(aside, 'keeper.pid')
    await rm(keeperFile)
    execFileSync('mkfifo', [keeperFile])
    const look = other.inspectVm({ ...spec, host: otherHost }, signal)
    // It has read of the run, and waits for the keeper's note: this opens as soon as it asks who the keeper is.
    const keeperPid = await open(keeperFile, 'w')
    // The other process has read that note and taken all away.
    await rm(join(aside, 'run.json'))
    process.kill(keeper, 'SIGKILL')
    await rm(keeperFile)
    await keeperPid.writeFile(String(keeper))
    await keeperPid.close()
    expect(await look).toMatchObject({ power: 'off' })
    await rename(aside, folder)
    await engine.removeVm(spec, call(2))
  },
)

test(
  'a qemu guest that powered itself off is off, however late its keeper writes that down',
  WITHIN,
  async () => {
    const { spec, keeper } = await poweredOffUnnoted()
    setTimeout(() => process.kill(keeper, 'SIGCONT'), 1_500)
    for (;;) {
      const status = await engine.inspectVm(spec, signal)
      if (status?.power === 'off') break
      expect(status?.power).toBe('booting')
      await sleep(20)
    }
    await engine.removeVm(spec, call(2))
  },
)

test('the qemu engine pulls the plug on a guest that does not shut down in time', WITHIN, async () => {
  const spec = await defined({ image: deaf })
  await engine.ensureVm(spec, wanted('on'), call())
  await engine.powerVm(spec, 'shutdown', call(2))
  expect((await engine.inspectVm(spec, signal))?.power).toBe('stopping')
  // Its time is up as soon as somebody looks after it who waits no longer.
  await opened({ shutdownLimitMs: 1 })
  while ((await engine.inspectVm(spec, signal))?.power !== 'off') await sleep(100)
  await engine.removeVm(spec, call(3))
})

test('the qemu engine leaves no half-made disk on a full file system', {
  ...WITHIN,
  skip: process.getuid?.() !== 0,
}, async () => {
  const disks = join(bench.dataDir, 'qemu/local-a/disks')
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs', disks])
  try {
    const disk = diskOf(host, { sizeGib: 10 })
    await expect(engine.ensureDisk(disk, call())).rejects.toMatchObject({ kind: 'unavailable' })
    expect(await readdir(disks)).toEqual([])
  } finally {
    execFileSync('umount', [disks])
  }
})

test('the qemu engine serves no volume to a QEMU that refused to start', {
  ...WITHIN,
  skip: !canShareVolumes,
}, async () => {
  // Where the user of a VM reaches it.
  const programs = await mkdtemp(join(tmpdir(), 'slipway-broken-'))
  await chmod(programs, 0o755)
  const broken = join(programs, 'broken-qemu')
  const real = hostArchitecture().qemuProgram
  await writeFile(broken, `#!/bin/sh\n[ "$1" = --version ] && exec ${real} --version\necho broken; exit 1\n`)
  await chmod(broken, 0o755)
  const unlucky = await bench.open({ qemuProgram: broken })
  const volume = diskOf(host, { type: 'shared-volume', sizeGib: 1024, blockSize: 0 })
  const spec = specOf(bench, host, { image: deaf, disks: [volume] })
  await engine.ensureDisk(volume, call())
  await engine.ensureVm(spec, wanted('off'), call())
  await expect(unlucky.ensureVm(spec, wanted('on'), call())).rejects.toThrow(/refused to start: broken/)
  await unlucky.close()
  await rm(programs, { recursive: true })
  const servers = async () =>
    (await bench.processes()).filter(({ commandLine }) => commandLine.includes('virtiofsd'))
  expect(await servers()).toEqual([])
  await engine.ensureVm(spec, wanted('on'), call())
  expect(await servers()).not.toEqual([])
  await engine.removeVm(spec, call(2))
  expect(await servers()).toEqual([])
  await engine.removeDisk(volume, call(2))
})

test('the qemu engine refuses to remove a disk that a VM still has', WITHIN, async () => {
  const disk = diskOf(host)
  await engine.ensureDisk(disk, call())
  const spec = await defined({ disks: [disk] })
  await expect(engine.removeDisk(disk, call())).rejects.toMatchObject({ kind: 'rejected' })
  await engine.removeVm(spec, call(2))
  await engine.removeDisk(disk, call(2))
})

test('the qemu engine never puts a blank OS disk in the place of a lost one', WITHIN, async () => {
  const spec = await defined()
  const folder = join(bench.dataDir, 'qemu/local-a/vms', spec.id)
  await rm(join(folder, 'os.qcow2'))
  expect(await engine.inspectVm(spec, signal)).toBeNull()
  await expect(engine.ensureVm({ ...spec, isNew: false }, wanted('off'), call(2))).rejects.toMatchObject({
    kind: 'lost',
  })
  await expect(engine.powerVm(spec, 'reset', call(2))).rejects.toMatchObject({ kind: 'missing' })
  expect(existsSync(join(folder, 'os.qcow2'))).toBe(false)
  await engine.removeVm(spec, call(3))
  expect(existsSync(folder)).toBe(false)
})

test('the qemu engine knows no other host', WITHIN, async () => {
  const spec = specOf(bench, 'elsewhere')
  await expect(engine.ensureVm(spec, wanted('off'), call())).rejects.toMatchObject({ kind: 'missing' })
  await expect(engine.inspectVm(spec, signal)).rejects.toMatchObject({ kind: 'missing' })
})

/** A second server beside the first, with limits of its own, until the test ends. */
async function opened(options: Parameters<QemuBench['open']>[0]) {
  const other = await bench.open(options)
  onTestFinished(() => other.close())
  return other
}

async function defined(changes: Partial<VmSpec> = {}): Promise<VmSpec> {
  const spec = specOf(bench, host, changes)
  await engine.ensureVm(spec, wanted('off'), call())
  return spec
}

function occupy(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host: bench.publicAddress, port }, () => resolve(server))
  })
}
