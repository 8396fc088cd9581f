import { createReadStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../../engine.ts'
import { type Architecture, hostArchitecture } from '../architecture.ts'
import { run } from '../command.ts'
import { isAccessible, isRoot, succeeds } from '../files.ts'
import { sha256Of } from '../images/images.ts'
import { makeSparseFile, makeUefiDisk } from '../images/uefi-disk.ts'
import type { Progress } from '../mini-guest/index.ts'
import { availablePackages, chooseMirrors, type Mirrors, sourceLines } from './mirrors.ts'
import {
  containerToolkit,
  driverPackages,
  efiProgram,
  hookFile,
  packagesOf,
  type Recipe,
  setUpScript,
} from './recipe.ts'
import { inUserNamespace, userNamespace, type WorkFolder, withWorkFolder } from './work-folder.ts'

export interface GpuImageOptions {
  /** The file to create. */
  output: string
  /** The Debian release. */
  suite: string
  mirrors: Partial<Mirrors>
  hasDriver: boolean
  packages: string[]
  /** A program that runs in the image as root, after the packages are installed. */
  hook?: string | undefined
  /** Stops the build. */
  signal?: AbortSignal | undefined
}

export interface GpuImage {
  sha256: string
  bytes: number
  diskMib: number
  hasToolkit: boolean
  /** Names and versions of the most important packages. */
  versions: string[]
}

const hours = 3_600_000
const shownPackages = ['linux-image-*', 'docker.io', 'nvidia-kernel-dkms', containerToolkit]

/**
 * Builds a Debian image for GPU VMs. Temporary files are in TMPDIR; the output file appears when it is
 * complete.
 */
export async function buildGpuImage(options: GpuImageOptions, progress: Progress): Promise<GpuImage> {
  const arch = hostArchitecture()
  await requirePrograms()
  if (!isRoot()) await requireUserNamespace()
  return withWorkFolder(progress, (folder) => build(folder, options, arch, progress))
}

async function build(
  folder: WorkFolder,
  options: GpuImageOptions,
  arch: Architecture,
  progress: Progress,
): Promise<GpuImage> {
  let steps = 0
  const begin = (what: string) => progress(`gpu image, step ${++steps} of 4: ${what}`)
  const { signal } = options
  const temporary = `${options.output}.tmp`
  try {
    begin('looking up Debian packages')
    const { sources, recipe } = await planPackages(folder.files, options, arch, progress)
    begin(`installing Debian ${options.suite}${recipe.hasDriver ? ' and compiling the NVIDIA driver' : ''}`)
    const at = (name: string) => join(folder.files, name)
    await installSystem(at('root.tar'), folder.shared, sources, recipe, options, arch)
    begin('creating the file system')
    const { rootMib, versions } = await makeFileSystem(folder.files, at('root.tar'), signal)
    begin('creating the disk')
    const parts = { efiProgram: at('grub.efi'), rootFileSystem: at('rootfs'), rootMib }
    await makeUefiDisk(temporary, parts, folder.files, signal)
    await rename(temporary, options.output)
    const { size } = await stat(options.output)
    const sha256 = await sha256Of(createReadStream(options.output))
    return { sha256, bytes: size, diskMib: rootMib, hasToolkit: recipe.hasToolkit, versions }
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Programs that not every Debian installation has, and their packages. */
const programs: Record<string, string> = {
  mmdebstrap: 'mmdebstrap',
  'qemu-img': 'qemu-utils',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.vfat': 'dosfstools',
  mcopy: 'mtools',
  sfdisk: 'fdisk',
}

async function requirePrograms(): Promise<void> {
  const folders = [...(process.env.PATH ?? '').split(':').filter(Boolean), '/usr/sbin', '/sbin']
  const missing: string[] = []
  for (const [program, name] of Object.entries(programs)) {
    const found = await Promise.all(folders.map((folder) => isAccessible(join(folder, program))))
    if (!found.includes(true)) missing.push(name)
  }
  if (missing.length > 0)
    throw new EngineError(
      'unavailable',
      `the gpu image cannot be built without ${missing.join(', ')}. Install: apt-get install ${missing.join(' ')}`,
    )
}

async function requireUserNamespace(): Promise<void> {
  await run('true', [], { launcher: userNamespace, showsPaths: true }).catch((error: Error) => {
    const reason = error.message.split('\n').at(-1)
    throw new EngineError(
      'unavailable',
      `the gpu image cannot be built because this user cannot create a user namespace (${reason}). Run the command as root, or install uidmap and add the user to /etc/subuid and /etc/subgid`,
      { cause: error },
    )
  })
}

async function planPackages(
  workDir: string,
  { suite, mirrors, hasDriver, packages, signal }: GpuImageOptions,
  arch: Architecture,
  progress: Progress,
): Promise<{ sources: string; recipe: Recipe }> {
  const chosen = await chooseMirrors(mirrors)
  progress(`mirrors: ${chosen.main} and ${chosen.security}`)
  const components = hasDriver ? 'main contrib non-free non-free-firmware' : 'main'
  const sources = await sourceLines(chosen, suite, components)
  const wanted = packagesOf(arch, { hasDriver, hasToolkit: false, packages })
  const available = await availablePackages(workDir, sources, [...wanted, containerToolkit], arch, signal)
  const missing = wanted.filter((name) => !available.has(name))
  if (missing.length > 0)
    throw new EngineError(
      'rejected',
      `${chosen.main} has no ${missing.join(', ')} for ${suite} on ${arch.debianName}${
        missing.some((name) => driverPackages(arch).includes(name))
          ? '; use another --mirror or --suite, or --without-driver'
          : ''
      }`,
    )
  const hasToolkit = hasDriver && available.has(containerToolkit)
  return { sources, recipe: { hasDriver, hasToolkit, packages } }
}

/** mmdebstrap runs as root or in a user namespace. It checks the signatures of all packages. */
async function installSystem(
  tarball: string,
  temporary: string,
  sources: string,
  recipe: Recipe,
  { suite, hook, signal }: GpuImageOptions,
  arch: Architecture,
): Promise<void> {
  const options = [
    ...[
      `--mode=${isRoot() ? 'root' : 'unshare'}`,
      '--variant=minbase',
      `--include=${packagesOf(arch, recipe).join(',')}`,
    ],
    ...['--aptopt=Acquire::Languages "none"', '--dpkgopt=path-exclude=/usr/share/doc/*'],
    ...(hook ? [`--customize-hook=upload ${shellWord(hook)} ${hookFile}`] : []),
    `--customize-hook=${setUpScript(arch, recipe, hook !== undefined)}`,
  ]
  // If mmdebstrap runs as root in its own mount namespace, its mounts disappear even if it is killed. In a
  // container that allows no namespace, mmdebstrap cannot mount anything either.
  const isSeparable = isRoot() && (await succeeds(run('unshare', ['--mount', 'true'])))
  await run('mmdebstrap', [...options, suite, tarball, '-'], {
    launcher: isSeparable ? ['unshare', '--mount'] : [],
    ...{ input: sources, signal, timeoutMs: 6 * hours, showsPaths: true, hasOwnGroup: true },
    env: { TMPDIR: temporary },
  })
}

const shellWord = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

const asRoot = (script: string, cwd: string, signal: AbortSignal | undefined) => {
  const options = { cwd, signal, timeoutMs: 2 * hours, showsPaths: true, hasOwnGroup: true }
  return run('sh', ['-ec', script], { ...options, launcher: inUserNamespace() })
}

async function makeFileSystem(
  workDir: string,
  tarball: string,
  signal: AbortSignal | undefined,
): Promise<{ rootMib: number; versions: string[] }> {
  // The kernel creates the files in /dev.
  const unpacking = `mkdir root
tar -x --numeric-owner --xattrs --xattrs-include='*' --exclude='./dev/*' -f root.tar -C root
rm root.tar
mv root${efiProgram} grub.efi
dpkg-query --admindir=root/var/lib/dpkg -W -f '\${db:Status-Abbrev}\${Package} \${Version}\\n' ${shownPackages.map(shellWord).join(' ')} 2>/dev/null || true`
  const rootMib = Math.ceil(((await stat(tarball)).size * 1.2) / 1024 ** 2) + 1024
  const listing = await asRoot(unpacking, workDir, signal)
  await makeSparseFile(join(workDir, 'rootfs'), rootMib)
  // Some versions of GRUB cannot read file systems with these features.
  const features = '^metadata_csum_seed,^orphan_file'
  await asRoot(`mkfs.ext4 -q -F -L root -O ${features} -d root rootfs\nrm -r root`, workDir, signal)
  const installed = [...listing.matchAll(/^ii\s+(\S+ \S+)$/gm)].map((match) => match[1]!)
  return { rootMib, versions: installed }
}
