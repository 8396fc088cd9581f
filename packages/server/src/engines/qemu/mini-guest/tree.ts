import { lstat, readdir, readFile, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Architecture } from '../architecture.ts'
import { run } from '../command.ts'
import type { TreeEntry } from './cpio.ts'
import { GUEST_FILES, GUEST_FOLDERS, guestModules, guestPrograms, initramfsInit } from './files.ts'
import { dependenciesOf, type KernelModule, modulesInLoadOrder } from './kernel-modules.ts'

type File = { mode: number; content: Buffer }

/** The content of the initramfs: a shell, the drivers, and a script that switches to the OS disk. */
export async function initramfsTree(
  unpacked: string,
  kernelVersion: string,
  { init, moduleNames } = { init: initramfsInit, moduleNames: guestModules },
): Promise<TreeEntry[]> {
  const modules = await modulesInLoadOrder(await modulesDir(unpacked, kernelVersion), moduleNames)
  const files = new Map<string, File>([
    ['init', text(init, 0o755)],
    ['bin/busybox', await program(await findPrograms(unpacked, ['busybox']), 'busybox')],
    ['lib/modules/wanted', text(`${modules.map(({ name }) => name).join(' ')}\n`)],
    [`lib/modules/${kernelVersion}/modules.dep`, text(modules.map(dependencyLine).join(''))],
  ])
  for (const { name, content } of modules)
    files.set(`lib/modules/${kernelVersion}/${name}.ko`, { mode: 0o644, content })
  const folders = { dev: 0o755, proc: 0o755, sys: 0o755, new: 0o755 }
  return [...withFolders(files, folders), { path: 'bin/sh', kind: 'link', target: 'busybox' }]
}

/** The initial content of the OS disk. */
export async function rootTree(unpacked: string, arch: Architecture): Promise<TreeEntry[]> {
  const linker = basename(arch.dynamicLinker)
  const found = await findPrograms(unpacked, ['busybox', linker, ...Object.values(guestPrograms)])
  const files = new Map<string, File>()
  for (const [path, file] of Object.entries(GUEST_FILES)) files.set(path, text(file.content, file.mode))
  for (const [path, name] of Object.entries(guestPrograms)) files.set(path, await program(found, name))
  files.set('bin/busybox', await program(found, 'busybox'))
  files.set(arch.dynamicLinker, await program(found, linker))
  const applets = (await run(found.get('busybox')!, ['--list-full'])).split('\n').filter(Boolean)
  const links = applets
    .filter((path) => !files.has(path))
    .map((path): TreeEntry => ({ path, kind: 'link', target: '/bin/busybox' }))
  return [
    ...withFolders(
      files,
      GUEST_FOLDERS,
      links.map(({ path }) => path),
    ),
    ...links,
  ]
}

function withFolders(
  files: Map<string, File>,
  folders: Record<string, number>,
  morePaths: string[] = [],
): TreeEntry[] {
  const modes = new Map(Object.entries(folders))
  for (const path of [...files.keys(), ...Object.keys(folders), ...morePaths])
    for (let dir = dirname(path); dir !== '.'; dir = dirname(dir)) if (!modes.has(dir)) modes.set(dir, 0o755)
  return [
    ...[...modes.keys()]
      .sort()
      .map((path): TreeEntry => ({ path, kind: 'directory', mode: modes.get(path)! })),
    ...[...files].map(([path, file]): TreeEntry => ({ path, kind: 'file', ...file })),
  ]
}

/** A line of `modules.dep`. */
function dependencyLine({ name, content }: KernelModule, _index: number, all: KernelModule[]): string {
  const needed = dependenciesOf(content).filter((other) => all.some((module) => module.name === other))
  return `${[`${name}.ko:`, ...needed.map((other) => `${other}.ko`)].join(' ')}\n`
}

function text(content: string, mode = 0o644): File {
  return { mode, content: Buffer.from(content) }
}

async function program(found: Map<string, string>, name: string): Promise<File> {
  return { mode: 0o755, content: await readFile(found.get(name)!) }
}

/** Debian 12 has modules in /lib, later releases in /usr/lib. */
async function modulesDir(unpacked: string, version: string): Promise<string> {
  const classic = join(unpacked, 'lib/modules', version)
  return (await lstat(classic).catch(() => null)) ? classic : join(unpacked, 'usr/lib/modules', version)
}

async function findPrograms(unpacked: string, names: string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const file of await readdir(unpacked, { recursive: true })) {
    const name = basename(file)
    if (!names.includes(name) || found.has(name)) continue
    const real = await realpath(join(unpacked, file)).catch(() => null)
    if (real && (await isElf(real))) found.set(name, real)
  }
  const missing = names.filter((name) => !found.has(name))
  if (missing.length > 0) throw new Error(`the unpacked packages lack ${missing.join(', ')}`)
  return found
}

/** Distinguishes programs from scripts and folders with the same name, such as `busybox`. */
async function isElf(path: string): Promise<boolean> {
  if (!(await lstat(path)).isFile()) return false
  return (await readFile(path)).subarray(0, 4).equals(Buffer.from('\x7fELF', 'latin1'))
}
