import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, type FileHandle, link, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../../engine.ts'
import { redactedTail } from '../command.ts'
import type { QemuContext } from '../context.ts'
import { createImage } from '../disks/disk-files.ts'
import { pathExists, readJson, readText, writeJson } from '../files.ts'
import { describeFile, openPlainFile } from '../images/image-header.ts'
import { bareEnvironment, identityOf, isAlive, type ProcessIdentity } from '../process/process.ts'
import type { CopySource } from './capture-files.ts'

interface Attempt {
  id: string
  process: ProcessIdentity | null
}

const limits = { memoryMib: 1024, processes: 64, cpuCores: 1 }
const programName = 'qemu-img'
const copiedFile = 'data.qcow2'
const baseFd = 3

/** The shell records the exit code, because a server that starts later cannot wait for the program. */
const keeperScript =
  'for g in $SLIPWAY_CGROUPS; do echo $$ >"$g"; done; ' +
  '"$@" >"log-$SLIPWAY_ATTEMPT" 2>&1 </dev/null; echo $? >"exit-$SLIPWAY_ATTEMPT.tmp"; mv "exit-$SLIPWAY_ATTEMPT.tmp" "exit-$SLIPWAY_ATTEMPT"'

/**
 * Copies a disk to `data.qcow2` in `folder`, in a process that outlives the server. The disk's content comes
 * from a guest, so the program runs as a user that can only read the source and write the copy. Returns true
 * when the copy is complete, and false while it runs. If no process is running, this starts the copy.
 */
export async function continueCopy(
  ctx: QemuContext,
  folder: string,
  copyId: string,
  source: CopySource,
  sizeGib: number,
  signal: AbortSignal,
): Promise<boolean> {
  const attempt = await readJson<Attempt>(join(folder, 'copy.json'))
  if (!attempt && (await pathExists(join(folder, copiedFile)))) return true
  if (!attempt) {
    await beginCopy(ctx, folder, copyId, source, sizeGib, signal)
    return false
  }
  const code = (await readText(join(folder, `exit-${attempt.id}`)))?.trim() ?? null
  if (code === null && attempt.process && (await isAlive(attempt.process))) return false
  await ctx.isolation.release(copyId)
  if (code === '0') {
    await accept(ctx, folder, attempt.id)
    return true
  }
  const log = (await readText(join(folder, `log-${attempt.id}`))) ?? ''
  await discardAttempt(folder)
  // If the file system is full, the exit code cannot be written either.
  if (code === '' || /No space left|Disk quota exceeded/.test(log))
    throw new EngineError('rejected', 'no space left on the disk of this host')
  throw new EngineError('unavailable', `the copy failed: ${redactedTail(log) || 'the process was killed'}`)
}

async function beginCopy(
  ctx: QemuContext,
  folder: string,
  copyId: string,
  source: CopySource,
  sizeGib: number,
  signal: AbortSignal,
): Promise<void> {
  await discardAttempt(folder)
  const id = randomBytes(6).toString('hex')
  const target = `copy-${id}.qcow2`
  await linkSource(source.file, join(folder, 'source.qcow2'))
  await createImage(join(folder, target), sizeGib, signal)
  const uid = await ctx.isolation.uidOf(folder)
  if (uid !== null) {
    await chown(folder, 0, uid)
    await chmod(folder, 0o710)
    await ctx.isolation.give(folder, target)
  }
  await writeJson(join(folder, 'copy.json'), { id, process: null } satisfies Attempt)
  const wrapped = await ctx.isolation.wrap(folder, copyId, programName, limits)
  const args = ['convert', '-q', '-n', '--target-is-zero', '-O', 'qcow2', sourceNode(source), target]
  const base = source.base && (await openBase(source.base.file))
  try {
    const child = spawn('/bin/sh', ['-c', keeperScript, 'slipway-copy', ...wrapped.command, ...args], {
      cwd: folder,
      detached: true,
      env: {
        ...bareEnvironment(),
        SLIPWAY_PROGRAM: programName,
        SLIPWAY_ATTEMPT: id,
        SLIPWAY_CGROUPS: wrapped.cgroupFiles.join(' '),
      },
      stdio: ['ignore', 'ignore', 'ignore', ...(base ? [base.fd] : [])],
    })
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject)
      child.once('spawn', resolve)
    })
    child.unref()
    await recordProcess(folder, id, child.pid!)
  } finally {
    await base?.close()
  }
}

async function recordProcess(folder: string, id: string, pid: number): Promise<void> {
  const identity = await identityOf(pid)
  await writeJson(join(folder, 'copy.json'), { id, process: identity } satisfies Attempt)
}

/**
 * Names the format and the base image explicitly, so that the file's header, which a guest could change, has
 * no effect.
 */
function sourceNode({ base }: CopySource): string {
  const file = (filename: string) => ({ driver: 'file', filename })
  return `json:${JSON.stringify({
    driver: 'qcow2',
    file: file('source.qcow2'),
    backing: base && { driver: base.format, file: file(`/proc/self/fd/${baseFd}`) },
  })}`
}

/** The program has no access to the images folder, so it inherits the open file. */
async function openBase(file: string): Promise<FileHandle> {
  const handle = await openPlainFile(file)
  if (!handle) throw new EngineError('missing', 'the base image of the disk no longer exists')
  const { mode } = await handle.stat()
  if ((mode & 0o444) !== 0o444) await handle.chmod(mode | 0o444)
  return handle
}

/**
 * Links the source into the copy's folder and makes it readable for the program, which cannot reach the
 * original path.
 */
async function linkSource(file: string, path: string): Promise<void> {
  await rm(path, { force: true })
  await link(file, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new EngineError('missing', 'the disk to copy no longer exists')
    throw error
  })
  await chmod(path, (await stat(path)).mode | 0o444)
}

/** Takes ownership of the finished copy, so that only the server can change it. */
async function accept(ctx: QemuContext, folder: string, attempt: string): Promise<void> {
  const copy = join(folder, `copy-${attempt}.qcow2`)
  if (await pathExists(copy)) {
    if (ctx.isolation.hasOwnUsers) await chown(copy, 0, 0)
    await chmod(copy, 0o644)
    await describeFile(copy)
    await rename(copy, join(folder, copiedFile))
  }
  await chmod(folder, 0o700)
  for (const name of await readdir(folder))
    if (/^(source\.qcow2|user\.json|copy\.json|(log|exit|copy)-.*)$/.test(name))
      await rm(join(folder, name), { force: true })
}

/** Kills the process of the last attempt, if it is still running, and removes the attempt's files. */
export async function discardAttempt(folder: string): Promise<void> {
  const attempt = await readJson<Attempt>(join(folder, 'copy.json'))
  if (attempt?.process && (await isAlive(attempt.process)))
    try {
      // The process group contains the shell and the program that it waits for.
      process.kill(-attempt.process.pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  for (const name of await readdir(folder).catch(() => []))
    if (/^(copy\.json|(log|exit|copy)-.*)$/.test(name)) await rm(join(folder, name), { force: true })
}
