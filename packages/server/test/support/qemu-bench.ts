import { execFile } from 'node:child_process'
import { createHash, randomInt } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '@slipway/testing/root.ts'
import type { Engine } from '../../src/engines/engine.ts'
import { canServeVolumes } from '../../src/engines/qemu/disks/volumes.ts'
import { createQemuEngine, ensureMiniGuest, type QemuEngineOptions } from '../../src/engines/qemu/index.ts'
import { Locks } from '../../src/engines/qemu/lock.ts'

const exec = promisify(execFile)
/** The mini guest is built once and shared by all test files and runs. */
export const CACHE = join(root, 'node_modules/.cache/slipway-qemu')

export interface QemuBench {
  dataDir: string
  forwarderProgram: string
  sshKeyFile: string
  sshPublicKey: string
  image: { name: string; source: Record<string, unknown> }
  /** Different from that of any test file that runs concurrently. */
  publicAddress: string
  open(options?: Partial<QemuEngineOptions>): Promise<Engine & { close(): Promise<void> }>
  /** `hostKey`: the host key that the server must have; without it, the key is not checked. */
  ssh(
    destination: string,
    command: string,
    options?: { keyFile?: string; source?: string; hostKey?: string },
  ): Promise<string>
  /**
   * Every process of this machine whose command line contains this bench or whose working directory is in its folder.
   */
  processes(): Promise<{ pid: number; commandLine: string }[]>
  close(): Promise<void>
}

const forwarderProgram = join(root, 'packages/server/dist/qemu-forwarder.js')

export const canShareVolumes = await canServeVolumes()

export async function makeBench(): Promise<QemuBench> {
  mkdirSync(join(CACHE, 'qemu/images'), { recursive: true })
  const dataDir = await mkdtemp(join(tmpdir(), 'slipway-qemu-'))
  await mkdir(join(dataDir, 'qemu'))
  await symlink(join(CACHE, 'qemu/images'), join(dataDir, 'qemu/images'))
  const source = await new Locks(CACHE).with('build', AbortSignal.timeout(300_000), () =>
    ensureMiniGuest(CACHE, () => {}),
  )
  const sshKeyFile = join(dataDir, 'key')
  const sshPublicKey = await makeKey(sshKeyFile)

  return {
    dataDir,
    forwarderProgram,
    sshKeyFile,
    sshPublicKey,
    image: { name: 'mini:latest', source },
    publicAddress: `127.100.${randomInt(1, 255)}.${randomInt(1, 255)}`,
    open: (options = {}) =>
      createQemuEngine({
        ...{ dataDir, location: 'local-a', scale: 0.002, addressRange: '127.100.0.0/16', egress: 'none' },
        egressAllow: [],
        gpus: [{ model: 'A100 80GB PCIe', count: 8 }],
        bootTimeoutS: 300,
        log: { info() {}, warn: (details, message) => console.warn(message, details) },
        forwarderProgram,
        ...options,
      }),
    ssh: (destination, command, options = {}) =>
      ssh(destination, command, { keyFile: sshKeyFile, ...options }),
    processes: () => processesWith(dataDir),
    async close() {
      for (const { pid } of await processesWith(dataDir))
        try {
          process.kill(pid, 'SIGKILL')
        } catch {}
      await rm(join(CACHE, 'qemu/images', `hung-${basename(dataDir)}`), { recursive: true, force: true })
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** A guest whose kernel has no usable initramfs: it prints to the console and hangs. */
export async function hungImage(bench: QemuBench): Promise<QemuBench['image']> {
  const folder = `hung-${basename(bench.dataDir)}`
  const images = join(bench.dataDir, 'qemu/images')
  await cp(join(images, String(bench.image.source.folder)), join(images, folder), { recursive: true })
  const initrd = 'nothing'
  await writeFile(join(images, folder, 'initrd'), initrd)
  const initrdSha256 = createHash('sha256').update(initrd).digest('hex')
  return { name: 'hung', source: { ...bench.image.source, folder, initrdSha256 } }
}

export async function makeKey(file: string): Promise<string> {
  await exec('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file])
  return (await readFile(`${file}.pub`, 'utf8')).trim()
}

async function ssh(
  destination: string,
  command: string,
  { keyFile, source, hostKey }: { keyFile: string; source?: string; hostKey?: string },
): Promise<string> {
  const [userAndHost, port = '22'] = destination.split(':')
  const options = [
    'BatchMode=yes',
    ...(hostKey
      ? [
          ...['HostKeyAlias=the-vm', `KnownHostsCommand=/bin/echo the-vm ${hostKey}`],
          ...['UserKnownHostsFile=none', 'StrictHostKeyChecking=yes'],
        ]
      : ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null']),
    'LogLevel=ERROR',
  ]
  const { stdout } = await exec('ssh', [
    ...['-F', 'none', '-i', keyFile, '-p', port, '-o', 'IdentitiesOnly=yes', '-o', 'ConnectTimeout=120'],
    ...options.flatMap((option) => ['-o', option]),
    ...(source ? ['-b', source] : []),
    userAndHost!,
    command,
  ])
  return stdout.trim()
}

async function processesWith(text: string): Promise<{ pid: number; commandLine: string }[]> {
  const found = []
  for (const name of await readdir('/proc')) {
    const pid = Number(name)
    if (!pid || pid === process.pid) continue
    const commandLine = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
    const workingDir = await readlink(`/proc/${pid}/cwd`).catch(() => '')
    const isOurs = commandLine.includes(text) || workingDir.includes(text)
    if (isOurs && !commandLine.startsWith('ssh ')) found.push({ pid, commandLine })
  }
  return found
}
