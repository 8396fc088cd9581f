import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { standardOsDiskGib } from '@slipway/contract'
import { type Architecture, hostArchitecture } from '../architecture.ts'
import { readJson, writeAtomically, writeJson } from '../files.ts'
import { imagesDir } from '../paths.ts'
import { cpioArchive } from './cpio.ts'
import { DebianPackages } from './debian-packages.ts'
import {
  GUEST_FILES,
  GUEST_FOLDERS,
  guestModules,
  guestPackages,
  guestPrograms,
  initramfsInit,
} from './files.ts'
import { makeOsDisk } from './os-disk.ts'
import { initramfsTree, rootTree } from './tree.ts'

export interface MiniGuestSource extends Record<string, unknown> {
  kind: 'mini'
  arch: Architecture['name']
  /** Folder under the images directory with `vmlinuz`, `initrd` and `os.qcow2`. */
  folder: string
  kernelVersion: string
  kernelSha256: string
  initrdSha256: string
  osSha256: string
  osSizeGib: number
}

export type Progress = (message: string) => void

/** Returns the existing mini guest if it was built with the current recipe, otherwise builds it. */
export async function ensureMiniGuest(dataDir: string, progress: Progress): Promise<MiniGuestSource> {
  const known = await readJson<{ recipe: string; source: MiniGuestSource }>(recordFile(dataDir))
  if (known?.recipe === recipeHash() && known.source.arch === hostArchitecture().name) return known.source
  return buildMiniGuest(dataDir, progress)
}

/** Returns the size of the mini guest's OS disk file. */
export const miniGuestBytes = async (dataDir: string, { folder }: MiniGuestSource): Promise<number> =>
  (await stat(join(imagesDir(dataDir), folder, 'os.qcow2'))).size

/** Makes the kernel, initramfs and OS disk from Debian packages of the host's architecture, without root. */
export async function buildMiniGuest(dataDir: string, progress: Progress): Promise<MiniGuestSource> {
  const arch = hostArchitecture()
  let steps = 0
  const begin = (what: string) => progress(`mini guest, step ${++steps} of 4: ${what}`)
  const workDir = join(imagesDir(dataDir), `build-${randomBytes(4).toString('hex')}`)
  await mkdir(workDir, { recursive: true, mode: 0o700 })
  try {
    const packages = new DebianPackages(workDir, arch.debianName)
    const kernelMeta = `linux-image-cloud-${arch.debianName}`
    begin('looking up Debian packages')
    await packages.refreshListsIfMissing(kernelMeta)
    const kernelPackage = (await packages.dependenciesOf(kernelMeta))[0]!
    begin(`downloading ${kernelPackage}, busybox and dropbear (about 25 MB)`)
    const unpacked = join(workDir, 'root')
    await packages.unpack([kernelPackage, ...guestPackages], unpacked)

    const kernelVersion = kernelPackage.replace(/^linux-image-/, '').replace(/-unsigned$/, '')
    begin(`packing the initramfs for Linux ${kernelVersion}`)
    const initrd = gzipSync(cpioArchive(await initramfsTree(unpacked, kernelVersion)), { level: 6 })
    const kernel = await readFile(join(unpacked, 'boot', `vmlinuz-${kernelVersion}`))
    begin('creating the OS disk')
    const osDisk = join(workDir, 'os.qcow2')
    await makeOsDisk(osDisk, await rootTree(unpacked, arch), standardOsDiskGib, workDir)
    const source = await install(dataDir, arch, kernelVersion, kernel, initrd, osDisk)
    await writeJson(recordFile(dataDir), { recipe: recipeHash(), source })
    progress(`mini guest ready: ${source.folder}`)
    return source
  } finally {
    await rm(workDir, { recursive: true, force: true })
  }
}

async function install(
  dataDir: string,
  arch: Architecture,
  kernelVersion: string,
  kernel: Buffer,
  initrd: Buffer,
  osDisk: string,
): Promise<MiniGuestSource> {
  const [kernelSha256, initrdSha256] = [sha256(kernel), sha256(initrd)]
  const osSha256 = sha256(await readFile(osDisk))
  const folder = `mini-${arch.name}-${sha256(Buffer.from(kernelSha256 + initrdSha256 + osSha256)).slice(0, 12)}`
  const target = join(imagesDir(dataDir), folder)
  await mkdir(target, { recursive: true })
  await writeAtomically(join(target, 'vmlinuz'), kernel)
  await writeAtomically(join(target, 'initrd'), initrd)
  await rename(osDisk, join(target, 'os.qcow2'))
  const checksums = { kernelSha256, initrdSha256, osSha256 }
  return { kind: 'mini', arch: arch.name, folder, kernelVersion, ...checksums, osSizeGib: standardOsDiskGib }
}

function recordFile(dataDir: string): string {
  return join(imagesDir(dataDir), 'mini.json')
}

function recipeHash(): string {
  const recipe = [initramfsInit, GUEST_FILES, GUEST_FOLDERS, guestModules, guestPrograms, guestPackages]
  return sha256(Buffer.from(JSON.stringify(recipe)))
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
