import { chmod, rename, rm, stat } from 'node:fs/promises'
import { type CaptureSpec, type DiskSpec, EngineError, noSuchDisk, noSuchVm } from '../../engine.ts'
import type { QemuContext } from '../context.ts'
import { type DiskRecord, growImage } from '../disks/disk-files.ts'
import { isThere } from '../files.ts'
import { describeFile } from '../images/image-header.ts'
import { bootOf, type ImageSource, osBaseOf } from '../images/images.ts'
import { observe } from '../observe.ts'
import { deviceId } from '../process/machine.ts'
import type { CaptureRecord } from './capture-files.ts'
import { continueCopy, forgetAttempt } from './copy.ts'
import { beginBackup, dropBackup, isBackupComplete, releaseBackup, targetFile } from './live.ts'

/** Begins a copy, or continues one that another call began. The caller holds the lock of the copy. */
export async function continueCapture(
  ctx: QemuContext,
  capture: CaptureSpec,
  known: CaptureRecord | null,
  signal: AbortSignal,
): Promise<void> {
  const begun = known ?? (await begin(ctx, capture, signal))
  if (begun.result) return
  const settled = await settleBackup(ctx, capture.id, begun)
  if (!settled) return
  const { boot, consistency, from, sizeGib } = settled
  const folder = ctx.captures.folder(capture.id)
  if (!(await continueCopy(ctx, folder, capture.id, from, sizeGib, signal))) return
  const { blocks } = await stat(ctx.captures.imageFile(capture.id))
  const source = { kind: 'capture', id: capture.id, boot, virtualSizeGib: sizeGib }
  await ctx.captures.write(capture.id, {
    ...settled,
    result: { storedBytes: blocks * 512, consistency, source },
  })
  await rm(ctx.captures.backupFile(capture.id), { force: true })
}

/** Returns null while the QEMU of a running VM copies; then its copy is taken from the VM's folder. */
async function settleBackup(
  ctx: QemuContext,
  id: string,
  begun: CaptureRecord,
): Promise<CaptureRecord | null> {
  if (!begun.vmId) return begun
  const backup = ctx.captures.backupFile(id)
  if (!(await isThere(backup))) {
    if (!(await isBackupComplete(ctx, begun.vmId, id))) return null
    await rename(targetFile(ctx, begun.vmId, id), backup)
  }
  // A QEMU that has ended meanwhile has released it already.
  await releaseBackup(ctx, begun.vmId, id).catch(() => {})
  const settled = { ...begun, vmId: null, from: { file: backup, base: null } }
  await ctx.captures.write(id, settled)
  return settled
}

async function begin(ctx: QemuContext, capture: CaptureSpec, signal: AbortSignal): Promise<CaptureRecord> {
  const record = await beginFrom(ctx, capture, signal)
  await ctx.captures.write(capture.id, record)
  return record
}

function beginFrom(ctx: QemuContext, capture: CaptureSpec, signal: AbortSignal): Promise<CaptureRecord> {
  const { from } = capture
  switch (from.kind) {
    case 'vm':
      return ctx.locks.with(from.vm.id, signal, () => beginOfVm(ctx, capture, from.vm.id, signal))
    case 'disk':
      return from.vm
        ? ctx.locks.with(from.vm.id, signal, () =>
            beginOfDisk(ctx, capture, from.disk.id, from.vm!.id, signal),
          )
        : beginOfDisk(ctx, capture, from.disk.id, null, signal)
    case 'snapshot':
      return beginOfSnapshot(ctx, capture, from.snapshot.id)
  }
}

async function beginOfVm(
  ctx: QemuContext,
  capture: CaptureSpec,
  vmId: string,
  signal: AbortSignal,
): Promise<CaptureRecord> {
  const seen = await observe(ctx, vmId)
  if (!seen) throw noSuchVm(vmId)
  const { spec } = seen.record
  const source = spec.image.source as ImageSource
  const base = await osBaseOf(ctx, spec)
  const file = ctx.records.osDisk(vmId)
  const boot = bootOf(source)
  const own = { kind: capture.kind, boot, result: null }
  const { virtualSizeGib: sizeGib } = await describeFile(file, 'qcow2', { mayReferToBase: true })
  if (!seen.process) {
    if (seen.power !== 'off' && seen.power !== 'crashed')
      throw new EngineError('unavailable', `${vmId} is ${seen.power}`)
    return { ...own, sizeGib, consistency: 'off', vmId: null, from: { file, base } }
  }
  return { ...own, sizeGib, ...(await beginLive(ctx, capture, vmId, 'os', sizeGib, signal)) }
}

async function beginOfDisk(
  ctx: QemuContext,
  capture: CaptureSpec,
  diskId: string,
  vmId: string | null,
  signal: AbortSignal,
): Promise<CaptureRecord> {
  const disk = await ctx.disks.read(diskId)
  if (!disk) throw noSuchDisk(diskId)
  if (disk.type === 'shared-volume') throw new EngineError('rejected', 'a shared volume cannot be copied')
  const { sizeGib } = disk
  const own = { kind: capture.kind, boot: null, sizeGib, result: null }
  const seen = vmId ? await observe(ctx, vmId) : null
  const isInUse = seen?.process && seen.record.spec.disks.some(({ id }) => id === diskId)
  if (!vmId || !isInUse)
    return { ...own, consistency: 'off', vmId: null, from: { file: ctx.disks.imageFile(diskId), base: null } }
  const node = `node-${deviceId(diskId)}`
  return { ...own, ...(await beginLive(ctx, capture, vmId, node, sizeGib, signal)) }
}

async function beginLive(
  ctx: QemuContext,
  capture: CaptureSpec,
  vmId: string,
  node: string,
  sizeGib: number,
  signal: AbortSignal,
): Promise<Pick<CaptureRecord, 'consistency' | 'vmId' | 'from'>> {
  const { mustFreeze } = capture
  const consistency = await beginBackup(ctx, vmId, capture.id, { node, sizeGib, mustFreeze }, signal)
  if (!consistency) {
    await dropBackup(ctx, vmId, capture.id)
    throw new EngineError('unfrozen', `the guest of ${vmId} has no agent that freezes its file systems`)
  }
  return { consistency, vmId, from: { file: targetFile(ctx, vmId, capture.id), base: null } }
}

async function beginOfSnapshot(
  ctx: QemuContext,
  capture: CaptureSpec,
  snapshotId: string,
): Promise<CaptureRecord> {
  const { sizeGib } = await requireCapture(ctx, snapshotId)
  const from = { file: ctx.captures.imageFile(snapshotId), base: null }
  return { kind: capture.kind, consistency: 'off', boot: null, sizeGib, vmId: null, from, result: null }
}

/** Throws `missing` unless the copy is complete. */
export async function requireCapture(ctx: QemuContext, id: string): Promise<CaptureRecord> {
  const record = await ctx.captures.read(id)
  if (!record?.result) throw new EngineError('missing', `no such image or snapshot: ${id}`)
  return record
}

/** Begins or continues to fill a new disk with the content of a copy. The caller holds the lock of the disk. */
export async function continueRestore(
  ctx: QemuContext,
  disk: DiskSpec & { source: { id: string } },
  known: DiskRecord | null,
  signal: AbortSignal,
): Promise<void> {
  if (known && !known.isCopying) return
  const { sizeGib } = await requireCapture(ctx, disk.source.id)
  if (!known) await ctx.disks.beginCopying(disk)
  const from = { file: ctx.captures.imageFile(disk.source.id), base: null }
  if (!(await continueCopy(ctx, ctx.disks.folder(disk.id), disk.id, from, sizeGib, signal))) return
  const file = ctx.disks.imageFile(disk.id)
  if (disk.sizeGib > sizeGib) await growImage(file, disk.sizeGib, signal)
  await chmod(file, 0o600)
  await ctx.disks.recordSize(disk, disk.sizeGib)
}

/** Removes a copy and everything that its making left. The caller holds its lock. */
export async function removeCopy(ctx: QemuContext, id: string, known: CaptureRecord | null): Promise<void> {
  if (known?.vmId && !known.result) await dropBackup(ctx, known.vmId, id)
  await forgetAttempt(ctx.captures.folder(id))
  await ctx.isolation.release(id)
  await ctx.captures.remove(id)
}
