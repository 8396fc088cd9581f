import { chmod, rename, rm, stat } from 'node:fs/promises'
import { type CaptureSpec, type DiskSpec, EngineError, noSuchDisk, noSuchVm } from '../../engine.ts'
import type { QemuContext } from '../context.ts'
import { type DiskRecord, growImage } from '../disks/disk-files.ts'
import { pathExists } from '../files.ts'
import { describeFile } from '../images/image-header.ts'
import { bootOf, type ImageSource, osBaseOf } from '../images/images.ts'
import { observe } from '../observe.ts'
import { deviceId } from '../process/machine.ts'
import type { CaptureRecord } from './capture-files.ts'
import { continueCopy, discardAttempt } from './copy.ts'
import { beginBackup, dropBackup, isBackupComplete, releaseBackup, targetFile } from './live.ts'

/** Starts a copy, or continues one that an earlier call started. The caller holds the copy's lock. */
export async function continueCapture(
  ctx: QemuContext,
  capture: CaptureSpec,
  known: CaptureRecord | null,
  signal: AbortSignal,
): Promise<void> {
  const started = known ?? (await begin(ctx, capture, signal))
  if (started.result) return
  const collected = await collectBackup(ctx, capture.id, started)
  if (!collected) return
  const { boot, consistency, from, sizeGib } = collected
  const folder = ctx.captures.folder(capture.id)
  if (!(await continueCopy(ctx, folder, capture.id, from, sizeGib, signal))) return
  const { blocks } = await stat(ctx.captures.imageFile(capture.id))
  const source = { kind: 'capture', id: capture.id, boot, virtualSizeGib: sizeGib }
  await ctx.captures.write(capture.id, {
    ...collected,
    result: { storedBytes: blocks * 512, consistency, source },
  })
  await rm(ctx.captures.backupFile(capture.id), { force: true })
}

/**
 * Moves QEMU's backup out of the VM's folder when it is complete. Returns null while QEMU is still copying.
 */
async function collectBackup(
  ctx: QemuContext,
  id: string,
  started: CaptureRecord,
): Promise<CaptureRecord | null> {
  if (!started.vmId) return started
  const backup = ctx.captures.backupFile(id)
  if (!(await pathExists(backup))) {
    if (!(await isBackupComplete(ctx, started.vmId, id))) return null
    await rename(targetFile(ctx, started.vmId, id), backup)
  }
  // If QEMU has exited, this fails, but the exit has already released the backup.
  await releaseBackup(ctx, started.vmId, id).catch(() => {})
  const collected = { ...started, vmId: null, from: { file: backup, base: null } }
  await ctx.captures.write(id, collected)
  return collected
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
      return ctx.locks.with(from.vm.id, signal, () => beginFromVm(ctx, capture, from.vm.id, signal))
    case 'disk':
      return from.vm
        ? ctx.locks.with(from.vm.id, signal, () =>
            beginFromDisk(ctx, capture, from.disk.id, from.vm!.id, signal),
          )
        : beginFromDisk(ctx, capture, from.disk.id, null, signal)
    case 'snapshot':
      return beginFromSnapshot(ctx, capture, from.snapshot.id)
  }
}

async function beginFromVm(
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
  const common = { kind: capture.kind, boot, result: null }
  const { virtualSizeGib: sizeGib } = await describeFile(file, 'qcow2', { mayReferToBase: true })
  if (!seen.process) {
    if (seen.power !== 'off' && seen.power !== 'crashed')
      throw new EngineError('unavailable', `${vmId} is ${seen.power}`)
    return { ...common, sizeGib, consistency: 'off', vmId: null, from: { file, base } }
  }
  return { ...common, sizeGib, ...(await beginLive(ctx, capture, vmId, 'os', sizeGib, signal)) }
}

async function beginFromDisk(
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
  const common = { kind: capture.kind, boot: null, sizeGib, result: null }
  const seen = vmId ? await observe(ctx, vmId) : null
  const isInUse = seen?.process && seen.record.spec.disks.some(({ id }) => id === diskId)
  if (!vmId || !isInUse)
    return {
      ...common,
      consistency: 'off',
      vmId: null,
      from: { file: ctx.disks.imageFile(diskId), base: null },
    }
  const node = `node-${deviceId(diskId)}`
  return { ...common, ...(await beginLive(ctx, capture, vmId, node, sizeGib, signal)) }
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
    throw new EngineError('unfrozen', `the guest of ${vmId} has no agent that can freeze its file systems`)
  }
  return { consistency, vmId, from: { file: targetFile(ctx, vmId, capture.id), base: null } }
}

async function beginFromSnapshot(
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

/** Starts or continues filling a new disk from a snapshot. The caller holds the disk's lock. */
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

/** Removes a copy and its temporary files. The caller holds the copy's lock. */
export async function removeCopy(ctx: QemuContext, id: string, known: CaptureRecord | null): Promise<void> {
  if (known?.vmId && !known.result) await dropBackup(ctx, known.vmId, id)
  await discardAttempt(ctx.captures.folder(id))
  await ctx.isolation.release(id)
  await ctx.captures.remove(id)
}
