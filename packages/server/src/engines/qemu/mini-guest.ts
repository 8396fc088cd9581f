import { createHash, randomBytes } from 'node:crypto'
import { lstat, mkdir, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Architecture, hostArchitecture } from './architecture.ts'
import { type CpioEntry, cpioArchive } from './cpio.ts'
import { DebianPackages } from './debian-packages.ts'
import { readJson, writeAtomically, writeJson } from './files.ts'
import { modulesInLoadOrder } from './kernel-modules.ts'
import { GUEST_FILES, GUEST_MODULES, INITRAMFS_INIT } from './mini-guest-files.ts'
import { imagesDir } from './paths.ts'

export interface MiniGuestSource extends Record<string, unknown> {
  kind: 'mini'
  arch: Architecture['name']
  /** Folder under the images directory with `vmlinuz` and `initrd`. */
  folder: string
  kernelVersion: string
  kernelSha256: string
  initrdSha256: string
}

export type Progress = (message: string) => void

const LIBRARIES = [
  'libc.so.6',
  'libcrypt.so.1',
  'libtomcrypt.so.1',
  'libtommath.so.1',
  'libz.so.1',
  'libgmp.so.10',
]
const PACKAGES = [
  'busybox-static',
  'dropbear-bin',
  'libc6',
  'libcrypt1',
  'libtomcrypt1',
  'libtommath1',
  'zlib1g',
  'libgmp10',
]

/** The mini guest that is already there and was made by this very recipe, or a freshly built one. */
export async function ensureMiniGuest(dataDir: string, progress: Progress): Promise<MiniGuestSource> {
  const known = await readJson<{ recipe: string; source: MiniGuestSource }>(recordFile(dataDir))
  if (known?.recipe === recipeHash() && known.source.arch === hostArchitecture().name) return known.source
  return buildMiniGuest(dataDir, progress)
}

/** Makes kernel and initramfs from Debian packages of the host's architecture. Needs no root. */
export async function buildMiniGuest(
  dataDir: string,
  progress: Progress,
  arch: Architecture = hostArchitecture(),
): Promise<MiniGuestSource> {
  const workDir = join(imagesDir(dataDir), `build-${randomBytes(4).toString('hex')}`)
  await mkdir(workDir, { recursive: true, mode: 0o700 })
  try {
    const packages = new DebianPackages(workDir, arch.debianName)
    const kernelMeta = `linux-image-cloud-${arch.debianName}`
    progress('looking up the Debian packages of the mini guest')
    await packages.refreshListsIfMissing(kernelMeta)
    const kernelPackage = (await packages.dependenciesOf(kernelMeta))[0]!
    progress(`downloading ${kernelPackage}, busybox and dropbear (about 25 MB)`)
    const root = join(workDir, 'root')
    await packages.unpack([kernelPackage, ...PACKAGES], root)

    const kernelVersion = kernelPackage.replace(/^linux-image-/, '').replace(/-unsigned$/, '')
    progress(`packing the initramfs for Linux ${kernelVersion}`)
    const initrd = gzipSync(cpioArchive(await initramfsEntries(root, kernelVersion, arch)), { level: 6 })
    const kernel = await readFile(join(root, 'boot', `vmlinuz-${kernelVersion}`))
    const source = await install(dataDir, arch, kernelVersion, kernel, initrd)
    if (arch.name === hostArchitecture().name)
      await writeJson(recordFile(dataDir), { recipe: recipeHash(), source })
    progress(`mini guest ready: ${source.folder}`)
    return source
  } finally {
    await rm(workDir, { recursive: true, force: true })
  }
}

async function initramfsEntries(root: string, version: string, arch: Architecture): Promise<CpioEntry[]> {
  const files = new Map<string, { mode: number; content: Buffer }>()
  const modules = await modulesInLoadOrder(await modulesDir(root, version), GUEST_MODULES)
  for (const module of modules)
    files.set(`lib/modules/${module.name}.ko`, { mode: 0o644, content: module.content })
  const order = modules.map((module) => `${module.name}\n`).join('')
  files.set('lib/modules/order', { mode: 0o644, content: Buffer.from(order) })
  files.set('init', { mode: 0o755, content: Buffer.from(INITRAMFS_INIT) })
  for (const [path, file] of Object.entries(GUEST_FILES))
    files.set(path, { mode: file.mode, content: Buffer.from(file.content) })

  const found = await findByName(root, [
    'busybox',
    'dropbear',
    'dropbearkey',
    ...LIBRARIES,
    basename(arch.dynamicLinker),
  ])
  const program = async (path: string) => {
    files.set(path, { mode: 0o755, content: await readFile(found.get(basename(path))!) })
  }
  await program('bin/busybox')
  await program('usr/sbin/dropbear')
  await program('usr/bin/dropbearkey')
  await program(arch.dynamicLinker)
  for (const library of LIBRARIES) await program(`usr/lib/${library}`)

  const directories = new Set(['root', 'sbin', 'dev', 'proc', 'sys', 'new'])
  for (const path of files.keys())
    for (let dir = dirname(path); dir !== '.'; dir = dirname(dir)) directories.add(dir)
  return [
    ...[...directories].sort().map((path): CpioEntry => ({ path, kind: 'directory' })),
    ...[...files].map(([path, file]): CpioEntry => ({ path, kind: 'file', ...file })),
    { path: 'bin/sh', kind: 'link', target: 'busybox' },
    { path: 'sbin/init', kind: 'link', target: '../bin/busybox' },
  ]
}

/** Debian 12 keeps modules under /lib, later releases under /usr/lib. */
async function modulesDir(root: string, version: string): Promise<string> {
  const classic = join(root, 'lib/modules', version)
  return (await lstat(classic).catch(() => null)) ? classic : join(root, 'usr/lib/modules', version)
}

async function findByName(root: string, names: string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const file of await readdir(root, { recursive: true })) {
    const name = basename(file)
    const path = join(root, file)
    if (!names.includes(name) || found.has(name)) continue
    const real = await realpath(path).catch(() => null)
    if (real && (await isElf(real))) found.set(name, real)
  }
  const missing = names.filter((name) => !found.has(name))
  if (missing.length > 0) throw new Error(`the unpacked packages lack ${missing.join(', ')}`)
  return found
}

/** Packages also ship scripts and folders called `busybox`. */
async function isElf(path: string): Promise<boolean> {
  if (!(await lstat(path)).isFile()) return false
  return (await readFile(path)).subarray(0, 4).equals(Buffer.from('\x7fELF', 'latin1'))
}

async function install(
  dataDir: string,
  arch: Architecture,
  kernelVersion: string,
  kernel: Buffer,
  initrd: Buffer,
): Promise<MiniGuestSource> {
  const kernelSha256 = sha256(kernel)
  const initrdSha256 = sha256(initrd)
  const folder = `mini-${arch.name}-${sha256(Buffer.from(kernelSha256 + initrdSha256)).slice(0, 12)}`
  const target = join(imagesDir(dataDir), folder)
  await mkdir(target, { recursive: true })
  await writeAtomically(join(target, 'vmlinuz'), kernel)
  await writeAtomically(join(target, 'initrd'), initrd)
  return { kind: 'mini', arch: arch.name, folder, kernelVersion, kernelSha256, initrdSha256 }
}

function recordFile(dataDir: string): string {
  return join(imagesDir(dataDir), 'mini.json')
}

function recipeHash(): string {
  return sha256(Buffer.from(JSON.stringify([INITRAMFS_INIT, GUEST_FILES, GUEST_MODULES])))
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
