import { spawn } from 'node:child_process'
import { type FileHandle, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../engine.ts'
import { redactedTail } from '../command.ts'
import { readText } from '../files.ts'
import { vmSocket } from '../paths.ts'
import type { WrappedCommand } from './isolation.ts'
import { withQmp } from './qmp.ts'

const startLimitMs = 30_000
const qmpTimeoutMs = 5_000
const termGraceMs = 3_000
const keeperGraceMs = 10_000

/** Identifies one process, even if its pid is reused later. */
export interface ProcessIdentity {
  pid: number
  /** Clock ticks between the machine's boot and the process's start. */
  startTicks: number
}

/**
 * The shell remains QEMU's parent (the keeper) and records QEMU's exit code, because a server that starts
 * later cannot wait for QEMU. Both are in a separate session, so that no signal to the server reaches them.
 */
const keeperScript =
  'echo $$ >keeper.pid; for g in $SLIPWAY_CGROUPS; do echo $$ >"$g"; done; [ -z "$SLIPWAY_PINS_MEMORY" ] || ulimit -l unlimited; ' +
  '"$@" >qemu.log 2>&1 </dev/null & echo $! >qemu.pid; wait $!; echo $? >exit.tmp; mv exit.tmp exit'

interface QemuStart {
  program: string
  wrapped: WrappedCommand
  args: string[]
  /** Open files that QEMU inherits as descriptors from 3 on. */
  files: FileHandle[]
  /** True if the guest's memory must be locked, as a passed-through GPU requires. */
  pinsMemory: boolean
}

/** The server's environment contains secrets, so VMs get a separate one. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  return { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, LC_ALL: 'C' }
}

export async function startQemu(vmDir: string, start: QemuStart): Promise<ProcessIdentity> {
  for (const leftover of ['exit', 'exit.tmp', 'qemu.pid', 'keeper.pid'])
    await rm(join(vmDir, leftover), { force: true })
  for (const name of ['qmp', 'serial', 'access', 'segment', 'agent'] as const)
    await rm(vmSocket(vmDir, name), { force: true })
  await new Promise<void>((resolve, reject) => {
    const { program, wrapped, args, files, pinsMemory } = start
    const keeper = spawn('/bin/sh', ['-c', keeperScript, 'slipway-vm', ...wrapped.command, ...args], {
      cwd: vmDir,
      detached: true,
      env: {
        ...bareEnvironment(),
        SLIPWAY_PROGRAM: program,
        SLIPWAY_CGROUPS: wrapped.cgroupFiles.join(' '),
        SLIPWAY_PINS_MEMORY: pinsMemory ? 'yes' : '',
      },
      stdio: ['ignore', 'ignore', 'ignore', ...files.map(({ fd }) => fd)],
    })
    keeper.once('error', reject)
    keeper.once('spawn', resolve)
    keeper.unref()
  })
  const until = Date.now() + startLimitMs
  while (Date.now() < until) {
    await throwIfExited(vmDir)
    const isUp = await withQmp(vmSocket(vmDir, 'qmp'), qmpTimeoutMs, async () => true).catch(() => false)
    const identity = isUp ? await identify(vmDir) : null
    if (identity) return identity
    await sleep(20)
  }
  throw new EngineError('unavailable', `QEMU did not open its control socket within ${startLimitMs} ms`)
}

async function throwIfExited(vmDir: string): Promise<void> {
  if ((await exitCode(vmDir)) === null) return
  const log = redactedTail((await readText(join(vmDir, 'qemu.log'))) ?? '')
  if (/not found|No such file.*qemu-system/.test(log) && log.includes('qemu-system'))
    throw new EngineError('unavailable', `QEMU is not installed: ${log}`)
  throw new EngineError('unavailable', `QEMU did not start: ${log}`)
}

/** Returns null while QEMU runs, and if the keeper died before it could record the code. */
export async function exitCode(vmDir: string): Promise<number | null> {
  const text = await readText(join(vmDir, 'exit'))
  return text === null ? null : Number(text.trim())
}

/**
 * Waits for the exit code as long as the keeper is alive, because the keeper records the code a moment after
 * QEMU has exited.
 */
export async function awaitExitCode(vmDir: string, label: string): Promise<number | null> {
  const until = Date.now() + keeperGraceMs
  while ((await identify(vmDir, label, 'keeper.pid')) && Date.now() < until) {
    const code = await exitCode(vmDir)
    if (code !== null) return code
    await sleep(20)
  }
  return exitCode(vmDir)
}

/** Returns the process in the VM's pid file, if it is alive and its command line contains the label. */
export async function identify(
  vmDir: string,
  label?: string,
  pidFile: 'qemu.pid' | 'keeper.pid' = 'qemu.pid',
): Promise<ProcessIdentity | null> {
  const pid = Number((await readText(join(vmDir, pidFile)))?.trim() ?? 0)
  if (!pid) return null
  // The identity is read first: if the pid is reused after this line, the label does not match.
  const identity = await identityOf(pid)
  if (identity && label) {
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (!commandLine.includes(label)) return null
  }
  return identity
}

export async function identityOf(pid: number): Promise<ProcessIdentity | null> {
  const startTicks = await startTicksOf(pid)
  return startTicks === null ? null : { pid, startTicks }
}

export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (await startTicksOf(identity.pid)) === identity.startTicks
}

/** Ends a process with SIGTERM, so that disk images are closed properly, then with SIGKILL. */
export async function endProcess(identity: ProcessIdentity, graceMs = termGraceMs): Promise<void> {
  if (!(await signalIfAlive(identity, 'SIGTERM'))) return
  const until = Date.now() + graceMs
  while (Date.now() < until) {
    if (!(await isAlive(identity))) return
    await sleep(20)
  }
  while (await signalIfAlive(identity, 'SIGKILL')) await sleep(20)
}

async function signalIfAlive(identity: ProcessIdentity, signal: NodeJS.Signals): Promise<boolean> {
  if (!(await isAlive(identity))) return false
  try {
    process.kill(identity.pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
  return true
}

/** Returns null for a dead process and for a zombie. */
async function startTicksOf(pid: number): Promise<number | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  if (stat === null) return null
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? null : Number(fields[19])
}
