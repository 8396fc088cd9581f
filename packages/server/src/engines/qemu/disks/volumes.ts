import { spawn } from 'node:child_process'
import { access, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../engine.ts'
import { lastWords, run } from '../command.ts'
import { readJson, writeJson } from '../files.ts'
import { bareEnvironment, endProcess, identityOf, type ProcessIdentity } from '../process/process.ts'

const programNames = ['/usr/libexec/virtiofsd', '/usr/lib/qemu/virtiofsd', '/usr/bin/virtiofsd']
const startLimitMs = 5_000
/** Beside a socket: who serves it. */
const recordName = '.server.json'

/** Whether shared volumes can be had here. */
export async function canServeVolumes(): Promise<boolean> {
  const program = await findVirtiofsd()
  return program !== null && (isRoot() || (await isSuccessor(program)))
}

async function findVirtiofsd(): Promise<string | null> {
  for (const program of programNames) if (await exists(program)) return program
  return null
}

const isRoot = () => process.getuid?.() === 0

const successors = new Map<string, Promise<boolean>>()
/** The C program of QEMU 7.2 and its successor in Rust take different words, and only the latter runs without root. */
function isSuccessor(program: string): Promise<boolean> {
  const known = successors.get(program)
  if (known) return known
  const help = run(program, ['--help']).catch((error: Error) => error.message)
  const answer = help.then((text) => text.includes('--shared-dir'))
  successors.set(program, answer)
  return answer
}

/** What it does for a VM counts for that VM, and is limited with it. */
const enterScript = 'for g in $SLIPWAY_CGROUPS; do echo $$ >"$g"; done; exec "$@"'

/** One virtiofsd per VM and volume. It leaves by itself when its QEMU does, but waits for ever for one that never came. */
export async function serveVolume(
  vmDir: string,
  socket: string,
  shareFolder: string,
  cgroupFiles: string[],
): Promise<void> {
  const program = await findVirtiofsd()
  if (!program)
    throw new EngineError('rejected', 'shared volumes need virtiofsd, which is not installed on this host')
  await endVolume(join(vmDir, `${socket}${recordName}`))
  await rm(join(vmDir, socket), { force: true })
  const command = [program, ...(await argumentsFor(program, socket, shareFolder))]
  const child = spawn('/bin/sh', ['-c', enterScript, 'slipway-volume', ...command], {
    cwd: vmDir,
    detached: true,
    env: { ...bareEnvironment(), SLIPWAY_CGROUPS: cgroupFiles.join(' ') },
    stdio: 'ignore',
  })
  let failure: string | null = null
  child.on('error', (error) => {
    failure = lastWords(error.message)
  })
  child.on('exit', (code) => {
    failure = `virtiofsd ended with code ${code}`
  })
  child.unref()
  const identity = child.pid && (await identityOf(child.pid))
  if (identity) await writeJson(join(vmDir, `${socket}${recordName}`), identity)
  const until = Date.now() + startLimitMs
  while (!(await exists(join(vmDir, socket)))) {
    if (failure !== null || Date.now() > until)
      throw new EngineError(
        'unavailable',
        `the shared volume is not served: ${failure ?? 'no socket in time'}`,
      )
    await sleep(20)
  }
}

/** Ends what still serves volumes to a VM whose QEMU is gone. */
export async function endVolumes(vmDir: string): Promise<void> {
  for (const name of await readdir(vmDir).catch(() => []))
    if (name.endsWith(recordName)) await endVolume(join(vmDir, name))
}

async function endVolume(record: string): Promise<void> {
  const identity = await readJson<ProcessIdentity>(record)
  if (identity) await endProcess(identity)
  await rm(record, { force: true })
}

async function argumentsFor(program: string, socket: string, shareFolder: string): Promise<string[]> {
  if (await isSuccessor(program)) {
    const sandbox = isRoot() ? [] : ['--sandbox', 'none']
    return [`--socket-path=${socket}`, `--shared-dir=${shareFolder}`, ...sandbox]
  }
  if (!isRoot())
    throw new EngineError(
      'rejected',
      'the virtiofsd of this host needs root; install the virtiofsd package of a later release',
    )
  return [`--socket-path=${socket}`, '-o', `source=${shareFolder}`, '-o', 'cache=auto']
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
