import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../../engine.ts'
import type { QemuContext } from '../context.ts'
import { withVmQmp } from '../disks/attachments.ts'
import { createImage } from '../disks/disk-files.ts'
import { readText, writeAtomically } from '../files.ts'
import { observe } from '../observe.ts'
import { vmSocket } from '../paths.ts'
import { deviceId } from '../process/machine.ts'
import { QmpError, type QmpSession } from '../process/qmp.ts'
import { freeze, thaw } from './guest-agent.ts'

/**
 * A guest is normally frozen for milliseconds. Any server that finds the VM's `frozen` file after this time
 * thaws the guest.
 */
const maxFrozenMs = 10_000

const jobOf = (captureId: string) => `copy-${deviceId(captureId)}`
/** The file is in the VM's folder, the only place where the VM's QEMU can write. */
const targetName = (captureId: string) => `capture-${captureId}.qcow2`

export const targetFile = (ctx: QemuContext, vmId: string, captureId: string) =>
  join(ctx.records.folder(vmId), targetName(captureId))

/**
 * Makes QEMU start a point-in-time backup of a running VM's disk. The guest is frozen while the backup
 * starts, if possible. Returns the consistency of the backup: `frozen`, or `crash` (crash-consistent) if the guest
 * was not frozen. Returns null if freezing is required but not possible. The caller holds the VM's lock.
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
    return await withVmQmp(ctx, vmId, async (qmp) => {
      await qmp.execute('blockdev-add', {
        ...{ driver: 'qcow2', 'node-name': jobOf(captureId) },
        file: { driver: 'file', filename: targetName(captureId) },
      })
      await writeAtomically(ctx.records.frozenFile(vmId), `${Date.now() + maxFrozenMs}`)
      const result = await freeze(agent)
      try {
        if (result !== 'frozen' && mustFreeze) return null
        await startJob(qmp, captureId, node)
      } finally {
        // If the agent does not respond, the file stays, and the guest is thawed later.
        if (result === 'not_frozen' || (await thaw(agent)))
          await rm(ctx.records.frozenFile(vmId), { force: true })
      }
      return result === 'frozen' ? 'frozen' : 'crash'
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

/**
 * Returns whether QEMU has finished the backup. A failed backup cannot be retried, because its point in time
 * has passed.
 */
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
  const jobs = await withVmQmp(ctx, vmId, (qmp) => qmp.execute<Job[]>('query-jobs'))
  return jobs.find(({ id }) => id === jobOf(captureId))
}

/** Makes QEMU release the backup, finished or not. The file is kept. */
export async function releaseBackup(ctx: QemuContext, vmId: string, captureId: string): Promise<void> {
  const id = jobOf(captureId)
  await withVmQmp(ctx, vmId, async (qmp) => {
    await qmp.execute('block-job-cancel', { device: id, force: true }).catch(ignoreQmpErrors)
    for (let tries = 0; tries < 100; tries++) {
      const isDismissed = await qmp.execute('job-dismiss', { id }).then(
        () => true,
        (error) => /not found/i.test((error as Error).message),
      )
      if (isDismissed) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await qmp.execute('blockdev-del', { 'node-name': id }).catch(ignoreQmpErrors)
  })
}

/** Removes a backup and its job, if they exist. The VM may be off. */
export async function dropBackup(ctx: QemuContext, vmId: string, captureId: string): Promise<void> {
  await releaseBackup(ctx, vmId, captureId).catch(() => {})
  await rm(targetFile(ctx, vmId, captureId), { force: true })
}

/** Returns whether a copy may have kept the guest frozen for too long. */
export async function isThawOverdue(ctx: QemuContext, vmId: string): Promise<boolean> {
  const until = await readText(ctx.records.frozenFile(vmId))
  return until !== null && Date.now() >= Number(until)
}

/**
 * Thaws a guest that a copy may have left frozen, because the server that made the copy died or because the agent was
 * slow. If the agent does not respond, a later call tries again. The caller holds the VM's lock.
 */
export async function thawIfOverdue(ctx: QemuContext, vmId: string): Promise<void> {
  if (!(await isThawOverdue(ctx, vmId))) return
  const file = ctx.records.frozenFile(vmId)
  if (await thaw(vmSocket(ctx.records.folder(vmId), 'agent'))) await rm(file, { force: true })
  else await writeAtomically(file, `${Date.now() + maxFrozenMs}`)
}

function ignoreQmpErrors(error: Error): void {
  if (!(error instanceof QmpError)) throw error
}
