import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CaptureSpec, Engine, VmSpec } from '../../src/engines/engine.ts'
import { importImage } from '../../src/engines/qemu/index.ts'
import { makeBench, type QemuBench } from '../support/qemu-bench.ts'
import { diskOf, specOf, wanted } from '../support/qemu-spec.ts'

const WITHIN = { timeout: 240_000 }
const signal = AbortSignal.timeout(600_000)
const call = (generation = 1) => ({ generation, signal })

let bench: QemuBench
let engine: Engine & { close(): Promise<void> }
let host: string

beforeAll(async () => {
  bench = await makeBench()
  engine = await bench.open()
  for await (const report of engine.inventory(signal)) host = report.name
}, 300_000)
afterAll(async () => {
  await engine?.close()
  await bench?.close()
}, 60_000)

test('the qemu engine says what to install if QEMU is missing', WITHIN, async () => {
  await expect(bench.open({ qemuProgram: 'qemu-system-nowhere' })).rejects.toThrow(
    /qemu-system-nowhere is not installed; install it with: apt-get install qemu-system-/,
  )
})

test('the qemu engine says if QEMU is too old', WITHIN, async () => {
  const old = join(bench.dataDir, 'old-qemu')
  await writeFile(old, '#!/bin/sh\necho QEMU emulator version 6.2.0\n')
  await chmod(old, 0o755)
  await expect(bench.open({ qemuProgram: old })).rejects.toThrow(/QEMU 6.2 is too old; install 7.2 or later/)
})

test('the qemu engine names a missing image and rejects a corrupt one', WITHIN, async () => {
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
  'the qemu engine imports only images with the right checksum and without references to other files',
  WITHIN,
  async () => {
    const file = join(bench.dataDir, 'cloud.qcow2')
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', file, '2G'])
    const sha256 = (path: string) => execFileSync('sha256sum', [path], { encoding: 'utf8' }).split(' ')[0]!
    const wrong = importImage(bench.dataDir, file, '0'.repeat(64), 'cloud', 'qcow2', () => {})
    await expect(wrong).rejects.toMatchObject({ kind: 'rejected' })
    const source = await importImage(bench.dataDir, file, sha256(file), 'cloud', 'qcow2', () => {})
    expect(source).toMatchObject({ kind: 'disk', format: 'qcow2', virtualSizeGib: 2 })
    await rm(join(bench.dataDir, 'qemu/images', source.file))

    const imageServer = createHttpServer((request, response) => {
      if (request.url === '/cloud.qcow2') createReadStream(file).pipe(response)
      else response.writeHead(404).end()
    }).listen(0, '127.0.0.1')
    await once(imageServer, 'listening')
    const url = `http://127.0.0.1:${(imageServer.address() as AddressInfo).port}`
    const wrongFile = importImage(bench.dataDir, `${url}/else`, sha256(file), 'cloud', 'qcow2', () => {})
    await expect(wrongFile).rejects.toThrow(/returned status 404/)
    const wrongSum = importImage(
      bench.dataDir,
      `${url}/cloud.qcow2`,
      '0'.repeat(64),
      'cloud',
      'qcow2',
      () => {},
    )
    await expect(wrongSum).rejects.toThrow(/has SHA-256/)
    expect(
      await importImage(bench.dataDir, `${url}/cloud.qcow2`, sha256(file), 'cloud', 'qcow2', () => {}),
    ).toEqual(source)
    await rm(join(bench.dataDir, 'qemu/images', source.file))
    imageServer.close()

    const pointing = join(bench.dataDir, 'pointing.qcow2')
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', pointing])
    const refused = importImage(bench.dataDir, pointing, sha256(pointing), 'pointing', 'qcow2', () => {})
    await expect(refused).rejects.toThrow(/refers to another file/)
  },
)

test('the qemu engine leaves no partial disk on a full file system', {
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

test('the qemu engine leaves nothing of a copy that fills the file system, and keeps the disk', {
  ...WITHIN,
  skip: process.getuid?.() !== 0,
}, async () => {
  const folder = join(bench.dataDir, 'qemu/small-a')
  await mkdir(folder)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', folder])
  const small = await bench.open({ location: 'small-a' })
  try {
    let smallHost = ''
    for await (const report of small.inventory(signal)) smallHost = report.name
    const disk = diskOf(smallHost)
    await small.ensureDisk(disk, call())
    const files = await readdir(join(folder, 'disks'), { recursive: true })
    const file = join(folder, 'disks', files.find((name) => name.endsWith('.qcow2'))!)
    execFileSync('qemu-io', ['-f', 'qcow2', '-c', 'write -P 1 0 10M', file])
    const from: CaptureSpec['from'] = { kind: 'disk', disk, vm: null }
    const ids = { id: randomUUID(), projectId: randomUUID(), host: smallHost }
    const capture: CaptureSpec = { ...ids, kind: 'snapshot', sizeGib: 1, from, mustFreeze: false }
    const copying = async () => {
      for (;;) {
        await small.capture(capture, call())
        if ((await small.inspectCapture(capture, signal))?.result) return
        await sleep(50)
      }
    }
    await expect(copying()).rejects.toMatchObject({
      kind: 'rejected',
      message: expect.stringContaining('no space left'),
    })
    await small.removeCapture(capture, call(2))
    expect(await readdir(join(folder, 'captures'))).toEqual([])
    expect(await small.inspectDisk(disk, signal)).toMatchObject({ id: disk.id, sizeGib: 1 })
  } finally {
    await small.close()
    // The forwarder of the location still runs in this folder, so a normal unmount would fail.
    execFileSync('umount', ['--lazy', folder])
  }
})

test('the qemu engine refuses to remove a disk that is attached to a VM', WITHIN, async () => {
  const disk = diskOf(host)
  await engine.ensureDisk(disk, call())
  const spec = await defineVm({ disks: [disk] })
  await expect(engine.removeDisk(disk, call())).rejects.toMatchObject({ kind: 'rejected' })
  await engine.removeVm(spec, call(2))
  await engine.removeDisk(disk, call(2))
})

test('the qemu engine never replaces a lost OS disk with an empty one', WITHIN, async () => {
  const spec = await defineVm()
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

test('the qemu engine rejects VMs of other hosts', WITHIN, async () => {
  const spec = specOf(bench, 'elsewhere')
  await expect(engine.ensureVm(spec, wanted('off'), call())).rejects.toMatchObject({ kind: 'missing' })
  await expect(engine.inspectVm(spec, signal)).rejects.toMatchObject({ kind: 'missing' })
})

async function defineVm(changes: Partial<VmSpec> = {}): Promise<VmSpec> {
  const spec = specOf(bench, host, changes)
  await engine.ensureVm(spec, wanted('off'), call())
  return spec
}
