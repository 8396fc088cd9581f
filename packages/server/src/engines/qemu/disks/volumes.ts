import { spawn } from 'node:child_process'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../engine.ts'
import { lastWords, run } from '../command.ts'
import { isAccessible, isRoot, readJson, writeJson } from '../files.ts'
import { bareEnvironment, endProcess, identityOf, type ProcessIdentity } from '../process/process.ts'

const programNames = ['/usr/libexec/virtiofsd', '/usr/lib/qemu/virtiofsd', '/usr/bin/virtiofsd']
const startLimitMs = 5_000
/** The file next to a socket that identifies the serving process. */
const recordName = '.server.json'

export async function canServeVolumes(): Promise<boolean> {
  const program = await findVirtiofsd()
  return program !== null && (isRoot() || (await isSuccessor(program)))
}

async function findVirtiofsd(): Promise<string | null> {
  for (const program of programNames) if (await isAccessible(program)) return program
  return null
}

const successors = new Map<string, Promise<boolean>>()
/** QEMU 7.2's virtiofsd in C and its successor in Rust have different options, and only the successor runs without root. */
function isSuccessor(program: string): Promise<boolean> {
  const readHelp = () => run(program, ['--help']).catch((error: Error) => error.message)
  const known = successors.get(program) ?? readHelp().then((text) => text.includes('--shared-dir'))
  successors.set(program, known)
  return known
}

/** Enters the VM's cgroups, so that the VM's limits include the server of its volumes. */
const enterScript = 'for g in $SLIPWAY_CGROUPS; do echo $$ >"$g"; done; exec "$@"'

/** Starts one virtiofsd per VM and volume. It ends with its QEMU, but would wait forever for one that never connects. */
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
  while (!(await isAccessible(join(vmDir, socket)))) {
    if (failure !== null || Date.now() > until)
      throw new EngineError(
        'unavailable',
        `the server of the shared volume did not start: ${failure ?? 'it has no socket'}`,
      )
    await sleep(20)
  }
}

/** Ends servers of volumes that are still there after QEMU has ended. */
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
      'the virtiofsd of this host needs root; install the virtiofsd package of a later Debian release',
    )
  return [`--socket-path=${socket}`, '-o', `source=${shareFolder}`, '-o', 'cache=auto']
}
