import { spawn } from 'node:child_process'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../engine.ts'
import { redactedTail, run } from '../command.ts'
import { isAccessible, isRoot, readJson, writeJson } from '../files.ts'
import { bareEnvironment, endProcess, identityOf, type ProcessIdentity } from '../process/process.ts'

const programPaths = ['/usr/libexec/virtiofsd', '/usr/lib/qemu/virtiofsd', '/usr/bin/virtiofsd']
const startLimitMs = 5_000
/** Next to each socket, a file with this suffix identifies the process that serves the socket. */
const recordSuffix = '.server.json'

export async function canServeVolumes(): Promise<boolean> {
  const program = await findVirtiofsd()
  return program !== null && (isRoot() || (await isRustVersion(program)))
}

async function findVirtiofsd(): Promise<string | null> {
  for (const program of programPaths) if (await isAccessible(program)) return program
  return null
}

const rustVersions = new Map<string, Promise<boolean>>()
/**
 * The C virtiofsd of QEMU 7.2 and its Rust successor have different options. Only the Rust version runs
 * without root.
 */
function isRustVersion(program: string): Promise<boolean> {
  const readHelp = () => run(program, ['--help']).catch((error: Error) => error.message)
  const known = rustVersions.get(program) ?? readHelp().then((text) => text.includes('--shared-dir'))
  rustVersions.set(program, known)
  return known
}

/** Joins the VM's cgroups, so that the VM's limits also cover virtiofsd. */
const enterScript = 'for g in $SLIPWAY_CGROUPS; do echo $$ >"$g"; done; exec "$@"'

/**
 * Starts the virtiofsd for one VM and volume. It exits when its QEMU does, but waits forever for a QEMU that
 * never connects, so the process is recorded and can be stopped.
 */
export async function serveVolume(
  vmDir: string,
  socket: string,
  shareFolder: string,
  cgroupFiles: string[],
): Promise<void> {
  const program = await findVirtiofsd()
  if (!program)
    throw new EngineError('rejected', 'shared volumes need virtiofsd, which is not installed on this host')
  await stopVolumeServer(join(vmDir, `${socket}${recordSuffix}`))
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
    failure = redactedTail(error.message)
  })
  child.on('exit', (code) => {
    failure = `it exited with code ${code}`
  })
  child.unref()
  const identity = child.pid && (await identityOf(child.pid))
  if (identity) await writeJson(join(vmDir, `${socket}${recordSuffix}`), identity)
  const until = Date.now() + startLimitMs
  while (!(await isAccessible(join(vmDir, socket)))) {
    if (failure !== null || Date.now() > until)
      throw new EngineError(
        'unavailable',
        `virtiofsd did not start for the shared volume: ${failure ?? 'it did not open its socket'}`,
      )
    await sleep(20)
  }
}

/** Stops virtiofsd processes that are still running after QEMU has exited. */
export async function stopVolumeServers(vmDir: string): Promise<void> {
  for (const name of await readdir(vmDir).catch(() => []))
    if (name.endsWith(recordSuffix)) await stopVolumeServer(join(vmDir, name))
}

async function stopVolumeServer(record: string): Promise<void> {
  const identity = await readJson<ProcessIdentity>(record)
  if (identity) await endProcess(identity)
  await rm(record, { force: true })
}

async function argumentsFor(program: string, socket: string, shareFolder: string): Promise<string[]> {
  if (await isRustVersion(program)) {
    const sandbox = isRoot() ? [] : ['--sandbox', 'none']
    return [`--socket-path=${socket}`, `--shared-dir=${shareFolder}`, ...sandbox]
  }
  if (!isRoot())
    throw new EngineError(
      'rejected',
      'the virtiofsd of this host needs root; install the virtiofsd package from a later Debian release',
    )
  return [`--socket-path=${socket}`, '-o', `source=${shareFolder}`, '-o', 'cache=auto']
}
