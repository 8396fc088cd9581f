import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, chmod, type FileHandle, lstat, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { EngineError, type VmSpec } from '../../engine.ts'
import { type Architecture, hostArchitecture } from '../architecture.ts'
import type { QemuContext } from '../context.ts'
import type { MiniGuestSource, Progress } from '../mini-guest/index.ts'
import { imagesDir } from '../paths.ts'
import {
  describeFile,
  describeImage,
  type ImageDescription,
  type ImageFormat,
  openPlainFile,
} from './image-header.ts'

interface DiskImageSource extends Record<string, unknown> {
  kind: 'disk'
  arch: Architecture['name']
  file: string
  format: ImageFormat
  sha256: string
  virtualSizeGib: number
  sizeBytes: number
}

const maxImportBytes = 512 * 1024 ** 3
const plainName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/

/** A custom image. The VM's folder has a hard link to the image's file, so that the image can be removed. */
interface CapturedSource extends Record<string, unknown> {
  kind: 'capture'
  id: string
  /** The mini guest whose kernel boots the guest; null if the guest boots from its disk. */
  boot: MiniGuestSource | null
  virtualSizeGib: number
}

export type ImageSource = MiniGuestSource | DiskImageSource | CapturedSource

/**
 * The mini guest, and custom images made from it, boot a kernel from the host. Other guests boot from their
 * disk.
 */
export const bootOf = (source: ImageSource): MiniGuestSource | null =>
  source.kind === 'mini' ? source : source.kind === 'capture' ? source.boot : null

/** Imports a cloud image from a file or URL, if it has the given checksum and format. */
export async function importImage(
  dataDir: string,
  source: string,
  sha256: string,
  name: string,
  format: ImageFormat,
  progress: Progress,
): Promise<DiskImageSource> {
  const expected = sha256.toLowerCase()
  if (!/^[0-9a-f]{64}$/.test(expected))
    throw new EngineError('rejected', `${sha256} is not a SHA-256 checksum; expected 64 hexadecimal digits`)
  const dir = imagesDir(dataDir)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const temporary = join(dir, `import-${randomBytes(6).toString('hex')}.tmp`)
  try {
    progress(`fetching ${name} from ${source}`)
    await pipeline(await openSource(source), limitSize, createWriteStream(temporary, { mode: 0o600 }))
    const actual = await sha256Of(createReadStream(temporary))
    if (actual !== expected)
      throw new EngineError('rejected', `${source} has SHA-256 ${actual}, expected ${expected}`)
    const file = `${expected}.img`
    const described = await describeFile(temporary, format)
    const { size: sizeBytes } = await lstat(temporary)
    await chmod(temporary, 0o400)
    await rename(temporary, join(dir, file))
    progress(`${name} is imported`)
    return { kind: 'disk', arch: hostArchitecture().name, file, sha256: expected, ...described, sizeBytes }
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Throws if the content is too large: an endless response would fill the host's disk. */
async function* limitSize(content: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > maxImportBytes)
      throw new EngineError('rejected', `the image is larger than ${maxImportBytes / 1024 ** 3} GiB`)
    yield chunk
  }
}

export async function sha256Of(content: Readable): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(content, hash)
  return hash.digest('hex')
}

async function openSource(source: string): Promise<Readable> {
  if (!/^https?:\/\//.test(source)) {
    await access(source).catch(() => {
      throw new EngineError('missing', `no such image file: ${source}`)
    })
    return createReadStream(source)
  }
  const response = await fetch(source, { signal: AbortSignal.timeout(3_600_000) })
  if (!response.ok || !response.body)
    throw new EngineError('unavailable', `${source} returned status ${response.status}`)
  return Readable.fromWeb(response.body as import('node:stream/web').ReadableStream)
}

/** Results by file. A file whose size and modification time are unchanged is not hashed again. */
const checked = new Map<string, { identity: string; image: ImageDescription }>()

/** Checks before every use that the file has this checksum and refers to no other file. */
export async function checkImage(
  file: string,
  sha256: string,
  imageName: string,
  format: ImageFormat,
): Promise<ImageDescription> {
  const handle = await openPlainFile(file).catch((error: Error) => refuse(imageName, error))
  if (!handle)
    throw new EngineError('missing', `image ${imageName} is not on this host; import or build it again`)
  try {
    const facts = await handle.stat()
    const identity = `${facts.ino} ${facts.size} ${facts.mtimeMs} ${sha256} ${format}`
    const known = checked.get(file)
    if (known?.identity === identity) return known.image
    if ((await sha256Of(handle.createReadStream({ start: 0, autoClose: false }))) !== sha256)
      throw new EngineError('rejected', `image ${imageName} is corrupt: its checksum differs`)
    const image = await describeImage(handle, format).catch((error: Error) => refuse(imageName, error))
    checked.set(file, { identity, image })
    return image
  } finally {
    await handle.close()
  }
}

function refuse(imageName: string, error: Error): never {
  if (error instanceof EngineError) throw new EngineError(error.kind, `image ${imageName}: ${error.message}`)
  throw new EngineError('unavailable', `image ${imageName} cannot be read`, { cause: error })
}

/**
 * Returns the path of a source in the images directory, to which only build and import write. A source comes
 * from a database row, so paths, links and names that build and import do not use are rejected.
 */
async function pathOf(
  dataDir: string,
  source: MiniGuestSource | DiskImageSource,
  imageName: string,
): Promise<string> {
  const unknown = new EngineError('rejected', `image ${imageName} was not registered with this engine`)
  const name = source.kind === 'disk' ? source.file : source.kind === 'mini' ? source.folder : undefined
  if (typeof name !== 'string' || !plainName.test(name)) throw unknown
  if (source.kind === 'disk' && name !== `${source.sha256}.img`) throw unknown
  const path = join(imagesDir(dataDir), name)
  if ((await lstat(path).catch(() => null))?.isSymbolicLink()) throw unknown
  return path
}

type Files = Pick<QemuContext, 'options' | 'records'>

/**
 * Returns the base of a VM's OS disk: for a custom image, a file in the VM's folder, otherwise a file in the
 * images directory.
 */
function baseFile({ options, records }: Files, { id, image }: VmSpec): Promise<string> | string {
  const source = image.source as ImageSource
  if (source.kind === 'capture') return records.osBase(id)
  const path = pathOf(options.dataDir, source, image.name)
  return source.kind === 'mini' ? path.then((folder) => join(folder, 'os.qcow2')) : path
}

/** Returns the kernel and initramfs that boot the guest. The list is empty if the guest boots from its disk. */
async function bootFiles({ options }: Files, { image }: VmSpec): Promise<{ file: string; sha256: string }[]> {
  const boot = bootOf(image.source as ImageSource)
  if (!boot) return []
  const folder = await pathOf(options.dataDir, boot, image.name)
  return [
    { file: join(folder, 'vmlinuz'), sha256: boot.kernelSha256 },
    { file: join(folder, 'initrd'), sha256: boot.initrdSha256 },
  ]
}

/**
 * Opens the files that QEMU inherits, in the order of its descriptors. The VM's user can read them only this
 * way.
 */
export async function openImage(ctx: Files, spec: VmSpec): Promise<FileHandle[]> {
  const files: FileHandle[] = []
  for (const name of [await baseFile(ctx, spec), ...(await bootFiles(ctx, spec)).map(({ file }) => file)]) {
    const file = await openPlainFile(name)
    if (!file) throw new EngineError('missing', `image ${spec.image.name} is not on this host`)
    files.push(file)
    if (((await file.stat()).mode & 0o444) !== 0o444) await file.chmod(0o444)
  }
  return files
}

/** Checks all files of a VM's image and returns the read-only base of the OS disk. */
export async function osBaseOf(
  ctx: Files,
  spec: VmSpec,
): Promise<{ file: string; format: ImageFormat; sizeGib: number }> {
  const { name, source } = spec.image as { name: string; source: ImageSource }
  // The kernel and the initramfs are not disk images, so only their checksums matter.
  for (const { file, sha256 } of await bootFiles(ctx, spec)) await checkImage(file, sha256, name, 'raw')
  const file = await baseFile(ctx, spec)
  // The file of a custom image is written only by this engine, and has no recorded checksum.
  const { format, virtualSizeGib } =
    source.kind === 'capture'
      ? await describeFile(file).catch((error: Error) => refuse(name, error))
      : source.kind === 'mini'
        ? await checkImage(file, source.osSha256, name, 'qcow2')
        : await checkImage(file, source.sha256, name, source.format)
  return { file, format, sizeGib: Math.max(spec.osDiskGib, virtualSizeGib) }
}
