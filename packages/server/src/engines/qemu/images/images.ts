import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, chmod, mkdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { EngineError } from '../../engine.ts'
import { type Architecture, hostArchitecture } from '../architecture.ts'
import { run } from '../command.ts'
import type { MiniGuestSource, Progress } from '../mini-guest/index.ts'
import { imagesDir } from '../paths.ts'

export interface DiskImageSource extends Record<string, unknown> {
  kind: 'disk'
  arch: Architecture['name']
  file: string
  format: 'qcow2' | 'raw'
  sha256: string
  virtualSizeGib: number
}

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
    const described = await describeImage(temporary)
    const file = `${expected}.img`
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

/** An image that names another file would make QEMU read whatever of the host it points to. */
async function describeImage(file: string): Promise<{ format: 'qcow2' | 'raw'; virtualSizeGib: number }> {
  const info = JSON.parse(await run('qemu-img', ['info', '--output=json', file])) as {
    format: string
    'virtual-size': number
    'backing-filename'?: string
    'format-specific'?: { data?: { 'data-file'?: string } }
  }
  if (info.format !== 'qcow2' && info.format !== 'raw')
    throw new EngineError('rejected', `images are qcow2 or raw, not ${info.format}`)
  if (info['backing-filename'] || info['format-specific']?.data?.['data-file'])
    throw new EngineError('rejected', 'the image refers to another file')
  return { format: info.format, virtualSizeGib: Math.ceil(info['virtual-size'] / 1024 ** 3) }
}

const verified = new Map<string, string>()

/** Hashes a file once per content: size and time of change tell whether it is still the one that was hashed. */
export async function verifyChecksum(file: string, sha256: string, imageName: string): Promise<void> {
  const facts = await stat(file).catch(() => null)
  if (!facts)
    throw new EngineError('missing', `image ${imageName}: ${file} is missing; import or build it again`)
  const identity = `${facts.ino} ${facts.size} ${facts.mtimeMs} ${sha256}`
  if (verified.get(file) === identity) return
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk)
  if (hash.digest('hex') !== sha256)
    throw new EngineError('rejected', `image ${imageName}: ${file} is corrupt, its checksum differs`)
  verified.set(file, identity)
}

/** The read-only base of a VM's OS disk, checked. */
export async function osBaseOf(
  dataDir: string,
  source: ImageSource,
  imageName: string,
  sizeGib: number,
): Promise<{ file: string; format: 'qcow2' | 'raw'; sizeGib: number }> {
  const dir = imagesDir(dataDir)
  if (source.kind === 'disk') {
    await verifyChecksum(join(dir, source.file), source.sha256, imageName)
    return {
      file: join(dir, source.file),
      format: source.format,
      sizeGib: Math.max(sizeGib, source.virtualSizeGib),
    }
  }
  const folder = join(dir, source.folder)
  await verifyChecksum(join(folder, 'vmlinuz'), source.kernelSha256, imageName)
  await verifyChecksum(join(folder, 'initrd'), source.initrdSha256, imageName)
  await verifyChecksum(join(folder, 'os.qcow2'), source.osSha256, imageName)
  return { file: join(folder, 'os.qcow2'), format: 'qcow2', sizeGib: Math.max(sizeGib, source.osSizeGib) }
}
