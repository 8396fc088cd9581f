import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../../engine.ts'
import type { QemuContext } from '../context.ts'
import { talk } from '../disks/attachments.ts'
import { createImage } from '../disks/disk-files.ts'
import { readText, writeAtomically } from '../files.ts'
import { observe } from '../observe.ts'
import { vmSocket } from '../paths.ts'
import { deviceId } from '../process/machine.ts'
import { QmpError, type QmpSession } from '../process/qmp.ts'
import { freeze, thaw } from './guest-agent.ts'

/** A guest is frozen for milliseconds. After this time, anyone who finds the mark thaws it. */
const frozenForMs = 10_000

const jobOf = (captureId: string) => `copy-${deviceId(captureId)}`
/** In the VM's folder: its QEMU can write only there. */
const targetName = (captureId: string) => `capture-${captureId}.qcow2`

export const targetFile = (ctx: QemuContext, vmId: string, captureId: string) =>
  join(ctx.records.folder(vmId), targetName(captureId))

/**
 * Lets the QEMU of a running VM copy one of its disks, as the disk is at this moment. The guest is frozen for the start of
 * the copy if it can be. Returns null if that is required and impossible. The caller holds the VM's lock.
 */
export async function beginBackup(
  ctx: QemuContext,
  vmId: string,
  captureId: string,
  { node, sizeGib, mustFreeze }: { node: string; sizeGib: number; mustFreeze: boolean },
  signal: AbortSignal,
): Promise<'frozen' | 'crash' | null> {
  const folder = ctx.records.folder(vmId)
  const target = targetFile(ctx, vmId, captureId)
  await dropBackup(ctx, vmId, captureId)
  await createImage(target, sizeGib, signal)
  await ctx.isolation.give(folder, targetName(captureId))
  const agent = vmSocket(folder, 'agent')
  try {
    return await talk(ctx, vmId, async (qmp) => {
      await qmp.execute('blockdev-add', {
        ...{ driver: 'qcow2', 'node-name': jobOf(captureId) },
        file: { driver: 'file', filename: targetName(captureId) },
      })
      await writeAtomically(ctx.records.frozen(vmId), `${Date.now() + frozenForMs}`)
      const isFrozen = await freeze(agent)
      try {
        if (!isFrozen && mustFreeze) return null
        await startJob(qmp, captureId, node)
      } finally {
        // Also after a freeze without a response, which may have happened.
        if (isFrozen || mustFreeze) await thaw(agent)
        await rm(ctx.records.frozen(vmId), { force: true })
      }
      return isFrozen ? 'frozen' : 'crash'
    })
  } catch (error) {
    await dropBackup(ctx, vmId, captureId)
    throw error
  }
}

async function startJob(qmp: QmpSession, captureId: string, node: string): Promise<void> {
  await qmp.execute('transaction', {
    actions: [
      {
        type: 'blockdev-backup',
        data: {
          ...{ 'job-id': jobOf(captureId), device: node, target: jobOf(captureId) },
          ...{ sync: 'full', 'auto-dismiss': false },
        },
      },
    ],
  })
}

/** Returns whether the copy by QEMU is complete. If it failed, the point in time is lost. */
export async function isBackupComplete(ctx: QemuContext, vmId: string, captureId: string): Promise<boolean> {
  const isRunning = (await observe(ctx, vmId))?.process
  const job = isRunning ? await findJob(ctx, vmId, captureId) : undefined
  if (!job) throw new EngineError('rejected', 'the VM was powered off while its disk was being copied')
  if (job.status !== 'concluded') return false
  if (!job.error) return true
  throw new EngineError(
    'rejected',
    /No space left/.test(job.error)
      ? 'no space left on the disk of this host'
      : 'the disk of the VM could not be copied',
  )
}

interface Job {
  id: string
  status: string
  error?: string
}

async function findJob(ctx: QemuContext, vmId: string, captureId: string): Promise<Job | undefined> {
  const jobs = await talk(ctx, vmId, (qmp) => qmp.execute<Job[]>('query-jobs'))
  return jobs.find(({ id }) => id === jobOf(captureId))
}

/** Makes QEMU release its copy, complete or not. The file stays. */
export async function releaseBackup(ctx: QemuContext, vmId: string, captureId: string): Promise<void> {
  const id = jobOf(captureId)
  await talk(ctx, vmId, async (qmp) => {
    await qmp.execute('block-job-cancel', { device: id, force: true }).catch(ignoreMissing)
    for (let tries = 0; tries < 100; tries++) {
      const isGone = await qmp.execute('job-dismiss', { id }).then(
        () => true,
        (error) => /not found/i.test((error as Error).message),
      )
      if (isGone) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await qmp.execute('blockdev-del', { 'node-name': id }).catch(ignoreMissing)
  })
}

/** Removes what an attempt may have left at a VM, which may be off. */
export async function dropBackup(ctx: QemuContext, vmId: string, captureId: string): Promise<void> {
  await releaseBackup(ctx, vmId, captureId).catch(() => {})
  await rm(targetFile(ctx, vmId, captureId), { force: true })
}

/** Thaws a guest whose copy was interrupted between freezing and thawing. The caller holds the VM's lock. */
export async function thawIfOverdue(ctx: QemuContext, vmId: string): Promise<void> {
  const until = await readText(ctx.records.frozen(vmId))
  if (until === null || Date.now() < Number(until)) return
  if (await thaw(vmSocket(ctx.records.folder(vmId), 'agent')))
    await rm(ctx.records.frozen(vmId), { force: true })
}

function ignoreMissing(error: Error): void {
  if (!(error instanceof QmpError)) throw error
}
