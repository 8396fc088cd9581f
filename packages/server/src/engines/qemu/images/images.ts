import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, chmod, type FileHandle, lstat, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { EngineError } from '../../engine.ts'
import { type Architecture, hostArchitecture } from '../architecture.ts'
import type { MiniGuestSource, Progress } from '../mini-guest/index.ts'
import { imagesDir } from '../paths.ts'
import {
  describeFile,
  describeImage,
  type ImageDescription,
  type ImageFormat,
  openPlainFile,
} from './image-header.ts'

export interface DiskImageSource extends Record<string, unknown> {
  kind: 'disk'
  arch: Architecture['name']
  file: string
  format: ImageFormat
  sha256: string
  virtualSizeGib: number
}

const plainName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/

export type ImageSource = MiniGuestSource | DiskImageSource

/** Takes a cloud image (qcow2 or raw) from a file or URL, if its checksum is the given one. */
export async function importImage(
  dataDir: string,
  source: string,
  sha256: string,
  name: string,
  progress: Progress,
): Promise<DiskImageSource> {
  const expected = sha256.toLowerCase()
  if (!/^[0-9a-f]{64}$/.test(expected)) throw new EngineError('rejected', `not a SHA-256 checksum: ${sha256}`)
  const dir = imagesDir(dataDir)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const temporary = join(dir, `import-${randomBytes(6).toString('hex')}.tmp`)
  try {
    progress(`fetching ${name} from ${source}`)
    const actual = await fetchHashed(source, temporary)
    if (actual !== expected)
      throw new EngineError('rejected', `${source} has SHA-256 ${actual}, expected ${expected}`)
    const file = `${expected}.img`
    const described = await describeFile(temporary)
    await chmod(temporary, 0o400)
    await rename(temporary, join(dir, file))
    progress(`${name} is imported`)
    return { kind: 'disk', arch: hostArchitecture().name, file, sha256: expected, ...described }
  } finally {
    await rm(temporary, { force: true })
  }
}

async function fetchHashed(source: string, target: string): Promise<string> {
  const hash = createHash('sha256')
  const hashing = new Transform({
    transform(chunk, _encoding, done) {
      hash.update(chunk)
      done(null, chunk)
    },
  })
  await pipeline(await openSource(source), hashing, createWriteStream(target, { mode: 0o600 }))
  return hash.digest('hex')
}

async function openSource(source: string): Promise<Readable> {
  if (!/^https?:\/\//.test(source)) {
    await access(source).catch(() => {
      throw new EngineError('missing', `no such image file: ${source}`)
    })
    return createReadStream(source)
  }
  const answer = await fetch(source, { signal: AbortSignal.timeout(3_600_000) })
  if (!answer.ok || !answer.body) throw new EngineError('unavailable', `${source} answered ${answer.status}`)
  return Readable.fromWeb(answer.body as import('node:stream/web').ReadableStream)
}

/** What was found of a file, by size and time of change: the same file is hashed once. */
const checked = new Map<string, { identity: string; image: ImageDescription }>()

/** The file with this checksum, which refers to no other file; looked at before every use. */
export async function checkImage(file: string, sha256: string, imageName: string): Promise<ImageDescription> {
  const handle = await openPlainFile(file).catch((error: Error) => refuse(imageName, error))
  if (!handle)
    throw new EngineError('missing', `image ${imageName} is not on this host; import or build it again`)
  try {
    const facts = await handle.stat()
    const identity = `${facts.ino} ${facts.size} ${facts.mtimeMs} ${sha256}`
    const known = checked.get(file)
    if (known?.identity === identity) return known.image
    const hash = createHash('sha256')
    for await (const chunk of handle.createReadStream({ start: 0, autoClose: false })) hash.update(chunk)
    if (hash.digest('hex') !== sha256)
      throw new EngineError('rejected', `image ${imageName} is corrupt: its checksum differs`)
    const image = await describeImage(handle).catch((error: Error) => refuse(imageName, error))
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
 * The folder or file of a source, inside the images directory. Only build and import write there; a source comes from
 * a row, so that nothing in it is believed: no path, no link, no name but those that the two give.
 */
async function placeOf(dataDir: string, source: ImageSource, imageName: string): Promise<string> {
  const unknown = new EngineError('rejected', `image ${imageName} is none that this engine has registered`)
  const name = source.kind === 'disk' ? source.file : source.kind === 'mini' ? source.folder : undefined
  if (typeof name !== 'string' || !plainName.test(name)) throw unknown
  if (source.kind === 'disk' && name !== `${source.sha256}.img`) throw unknown
  const place = join(imagesDir(dataDir), name)
  if ((await lstat(place).catch(() => null))?.isSymbolicLink()) throw unknown
  return place
}

/** What QEMU inherits, in the order of its descriptors. Readable to the VM's user, which has no other way to it. */
export async function openImage(
  dataDir: string,
  source: ImageSource,
  imageName: string,
): Promise<FileHandle[]> {
  const place = await placeOf(dataDir, source, imageName)
  const names =
    source.kind === 'disk' ? [place] : ['os.qcow2', 'vmlinuz', 'initrd'].map((name) => join(place, name))
  const files: FileHandle[] = []
  for (const name of names) {
    const file = await openPlainFile(name)
    if (!file) throw new EngineError('missing', `image ${imageName} is not on this host`)
    files.push(file)
    if (((await file.stat()).mode & 0o444) !== 0o444) await file.chmod(0o444)
  }
  return files
}

/** The read-only base of a VM's OS disk, checked. */
export async function osBaseOf(
  dataDir: string,
  source: ImageSource,
  imageName: string,
  sizeGib: number,
): Promise<{ file: string; format: ImageFormat; sizeGib: number }> {
  const place = await placeOf(dataDir, source, imageName)
  if (source.kind === 'disk') {
    const { format, virtualSizeGib } = await checkImage(place, source.sha256, imageName)
    return { file: place, format, sizeGib: Math.max(sizeGib, virtualSizeGib) }
  }
  await checkImage(join(place, 'vmlinuz'), source.kernelSha256, imageName)
  await checkImage(join(place, 'initrd'), source.initrdSha256, imageName)
  const file = join(place, 'os.qcow2')
  const { format, virtualSizeGib } = await checkImage(file, source.osSha256, imageName)
  return { file, format, sizeGib: Math.max(sizeGib, virtualSizeGib) }
}
