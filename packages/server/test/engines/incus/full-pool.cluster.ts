import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CaptureSpec, DiskSpec, VmSpec } from '../../../src/engines/engine.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { ConformanceBench } from '../../support/conformance-bench.ts'
import { patienceMs } from '../../support/incus/cluster-bench.ts'
import { IncusBench, whyNoIncus } from '../../support/incus-bench.ts'

const mib = 1024 ** 2
const signal = AbortSignal.timeout(900_000)
const at = (generation: number) => ({ generation, signal })
/** The expected error, which is not retried. */
const full = { kind: 'rejected', message: 'no space left in the storage pool' }
const content = Buffer.alloc(8 * mib, 'what the tenant wrote')

let small: string
let bench: IncusBench
let engine: IncusEngine
let conformance: ConformanceBench
let disk: DiskSpec
let vm: VmSpec
const contentFile = () => join(small, 'pool/custom', `slipway_disk-${disk.id}`, 'content')

/** Creates one small file system for the pool and the images of the daemon. */
async function openSmall(): Promise<void> {
  small = await mkdtemp(join(tmpdir(), 'swi-small-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128m', 'tmpfs', small])
  await chmod(small, 0o711)
  for (const name of ['pool', 'images']) await mkdir(join(small, name), { mode: 0o711 })
  bench = await IncusBench.alone(`mkdir -p "$1/images"; mount --bind '${small}/images' "$1/images"`)
  await bench.members[0]!.cli('storage', 'create', 'small', 'dir', `source=${join(small, 'pool')}`)
}

describe.skipIf(whyNoIncus)(`a full storage pool ${whyNoIncus}`, () => {
  beforeAll(async () => {
    await openSmall()
    engine = await bench.engine(bench.config({ storage_pool: 'small' }))
    const image = { name: 'guest:latest', source: { alias: 'guest:latest' } }
    conformance = await ConformanceBench.open({ engine, host: 'm1', image, close: async () => {} })
    vm = conformance.spec
    await engine.ensureVm(vm, conformance.wanted('off'), at(1))
    disk = conformance.newDisk()
    await engine.ensureDisk(disk, at(1))
    await writeFile(contentFile(), content)
  }, 240_000)

  afterAll(async () => {
    await engine?.close()
    await bench?.close()
    execFileSync('umount', ['--lazy', small])
    await rm(small, { recursive: true })
  }, 60_000)

  /** Incus keeps an empty folder for the snapshots of a disk, so folders do not count. */
  const files = async () => {
    const found = await readdir(small, { recursive: true, withFileTypes: true })
    const paths = found
      .filter((entry) => !entry.isDirectory())
      .map(({ parentPath, name }) => join(parentPath, name))
    return paths.sort()
  }

  /** Fills the file system except for `freeBytes`. Returns a function that undoes this. */
  async function fill(freeBytes: number): Promise<() => Promise<void>> {
    const { bavail, bsize } = await statfs(small)
    const filler = join(small, 'filler')
    await writeFile(filler, Buffer.alloc(bavail * bsize - Math.round(freeBytes)))
    return () => rm(filler)
  }

  const sources: Record<string, () => { from: CaptureSpec['from']; bytes: number }> = {
    disk: () => ({ from: { kind: 'disk', disk, vm: null }, bytes: content.length }),
    VM: () => {
      const root = join(small, 'pool/containers', `slipway_vm-${vm.id}`)
      const [bytes] = execFileSync('du', ['-s', '--block-size=1', root], { encoding: 'utf8' }).split('\t')
      return { from: { kind: 'vm', vm }, bytes: Number(bytes) }
    },
  }

  const captureOf = (from: CaptureSpec['from']): CaptureSpec => ({
    ...{ id: randomUUID(), host: 'm1', projectId: vm.projectId, sizeGib: 1, mustFreeze: true },
    ...{ kind: from.kind === 'vm' ? 'image' : 'snapshot', from },
  })

  /** Waits for the end of the copy as its operation does. */
  const complete = (capture: CaptureSpec) =>
    eventually(async () => {
      await engine.capture(capture, at(1))
      return (await engine.inspectCapture(capture, signal))?.result
    }, patienceMs)

  // A copy needs space for two copies: Incus first takes a snapshot, which is a full copy in this kind of pool,
  // and then copies the snapshot.
  test.each([
    ['disk', 'half a copy', 0.5],
    ['disk', 'one and a half copies', 1.5],
    ['VM', 'half a copy', 0.5],
    ['VM', 'one and a half copies', 1.5],
  ])('a copy of a %s with space for %s is rejected and leaves nothing', async (source, _space, share) => {
    const { from, bytes } = sources[source]!()
    const before = await files()
    const capture = captureOf(from)
    const empty = await fill(bytes * share)
    await expect(complete(capture)).rejects.toMatchObject(full)
    await engine.removeCapture(capture, at(2))
    expect(await engine.inspectCapture(capture, signal)).toBeNull()
    await empty()
    expect(await files()).toEqual(before)
    expect((await conformance.report()).captures).toEqual([])
    expect((await readFile(contentFile())).equals(content)).toBe(true)
    expect(await engine.inspectVm(vm, signal)).toMatchObject({ power: 'off' })

    const later = captureOf(from)
    expect(await complete(later)).toMatchObject({ consistency: 'off' })
    await engine.removeCapture(later, at(2))
  })

  test('a disk from a snapshot without enough space is rejected and leaves nothing', async () => {
    const snapshot = captureOf({ kind: 'disk', disk, vm: null })
    const { source } = await complete(snapshot)
    const before = await files()
    const copy = { ...conformance.newDisk(), source: { id: snapshot.id, host: 'm1', source } }
    const restored = () =>
      eventually(async () => {
        await engine.ensureDisk(copy, at(1))
        const status = await engine.inspectDisk(copy, signal)
        return status !== null && !status.isCopying
      }, patienceMs)
    const empty = await fill(content.length / 2)
    await expect(restored()).rejects.toMatchObject(full)
    await engine.removeDisk(copy, at(2))
    await empty()
    expect(await files()).toEqual(before)
    await engine.removeCapture(snapshot, at(2))
  })
})
