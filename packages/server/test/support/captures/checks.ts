import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { CaptureSpec, DiskSpec } from '../../../src/engines/engine.ts'
import { type ConformanceBench, expectKind } from '../conformance-bench.ts'

const captureOf = (bench: ConformanceBench, from: CaptureSpec['from'], sizeGib: number): CaptureSpec => ({
  ...{ id: randomUUID(), host: bench.subject.host, projectId: bench.spec.projectId },
  ...{ kind: from.kind === 'vm' ? 'image' : 'snapshot', from, sizeGib, mustFreeze: true },
})

const inspect = (bench: ConformanceBench, capture: CaptureSpec) =>
  bench.engine.inspectCapture(capture, bench.signal)

/** Waits for the end of the copy as its operation does: it calls the engine before each inspection. */
const complete = (bench: ConformanceBench, capture: CaptureSpec, generation: number) =>
  bench.eventually(async () => {
    await bench.engine.capture(capture, bench.at(generation))
    return (await inspect(bench, capture))?.result ?? false
  }, 'a complete copy')

const waitForRestore = (bench: ConformanceBench, disk: DiskSpec) =>
  bench.eventually(async () => {
    await bench.engine.ensureDisk(disk, bench.at(1))
    const status = await bench.engine.inspectDisk(disk, bench.signal)
    return status !== null && !status.isCopying && status
  }, 'a complete disk')

/** Checks for copying a disk that no VM has. */
export const diskCaptureChecks = {
  'copies a disk, restores the copy without the disk, and refuses an older generation': async (
    bench: ConformanceBench,
  ) => {
    const { engine } = bench
    const disk = bench.newDisk()
    await engine.ensureDisk(disk, bench.at(1))
    const capture = captureOf(bench, { kind: 'disk', disk, vm: null }, 1)
    expect(await inspect(bench, capture)).toBeNull()
    const result = await complete(bench, capture, 2)
    expect(result).toMatchObject({ consistency: 'off' })
    expect(result.storedBytes).toBeGreaterThan(0)
    expect(await complete(bench, capture, 2)).toEqual(result)
    expect(await inspect(bench, capture)).toEqual({ id: capture.id, generation: 2, result })
    expect((await bench.report()).captures).toContainEqual({ id: capture.id, generation: 2 })
    await expectKind('stale', engine.capture(capture, bench.at(1)))
    await expectKind('stale', engine.removeCapture(capture, bench.at(1)))
    await engine.removeDisk(disk, bench.at(2))

    const source = { id: capture.id, host: capture.host, source: result.source }
    const copy = { ...bench.newDisk(), sizeGib: 2, source }
    expect(await waitForRestore(bench, copy)).toEqual({ id: copy.id, generation: 1, sizeGib: 2 })
    await engine.removeCapture(capture, bench.at(3))
    await engine.removeCapture(capture, bench.at(3))
    expect(await inspect(bench, capture)).toBeNull()
    expect((await bench.report()).captures).toEqual([])
    await expectKind('stale', engine.capture(capture, bench.at(2)))
    expect(await inspect(bench, capture)).toBeNull()
    await expectKind('missing', engine.ensureDisk({ ...bench.newDisk(), source }, bench.at(1)))
    expect(await engine.inspectDisk(copy, bench.signal)).toMatchObject({ sizeGib: 2 })
    await engine.removeDisk(copy, bench.at(2))
  },
}

/** Checks for copying the OS disk of a VM that is off. */
export const vmCaptureChecks = {
  'copies the OS disk of a VM that is off, for new VMs that outlive the copy': async (
    bench: ConformanceBench,
  ) => {
    const { engine, spec, signal } = bench
    const capture = captureOf(bench, { kind: 'vm', vm: spec }, spec.osDiskGib)
    const result = await complete(bench, capture, 1)
    expect(result).toMatchObject({ consistency: 'off' })
    expect(await bench.power()).toBe('off')
    const image = { name: 'own:latest', source: result.source }
    const own = { macAddress: '52:54:00:c0:f0:02', privateAddress: '172.27.0.11', publicAddress: '' }
    const network = { ...spec.network, ...own }
    const copiedVm = { ...spec, id: randomUUID(), name: 'from-copy', gpus: [], image, disks: [], network }
    await engine.ensureVm(copiedVm, bench.wanted('off'), bench.at(1))
    await engine.removeCapture(capture, bench.at(2))
    expect(await engine.inspectVm(copiedVm, signal)).toMatchObject({ power: 'off' })
    const late = { ...copiedVm, id: randomUUID() }
    await expectKind('missing', engine.ensureVm(late, bench.wanted('off'), bench.at(1)))
    await engine.ensureVm({ ...copiedVm, isNew: false }, bench.wanted('off'), bench.at(2))
    await engine.removeVm(copiedVm, bench.at(3))
    await engine.removeVm(late, bench.at(3))
  },
}
