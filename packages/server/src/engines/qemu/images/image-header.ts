import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { EngineError } from '../../engine.ts'
import { isMissing } from '../files.ts'

export type ImageFormat = 'qcow2' | 'raw'

export interface ImageDescription {
  format: ImageFormat
  virtualSizeGib: number
}

const headerBytes = 104
const qcow2Magic = 0x514649fb
/**
 * Supported feature bits: dirty, corrupt, compression type and extended L2 entries, but not an external data
 * file.
 */
const selfContainedFeatures = 0b11011n
const maxVirtualBytes = 64n * 1024n ** 4n
const foreignMagics = ['KDMV', '# Disk DescriptorFile', 'vhdxfile', 'conectix', 'QED\0', '<<< ']

/**
 * Opens regular files only, because a link or device could make the server read other files of the host. All
 * later reads must use this handle.
 */
export async function openPlainFile(file: string): Promise<FileHandle | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await open(file, flags).catch((error: NodeJS.ErrnoException) => {
    if (isMissing(error)) return null
    if (error.code === 'ELOOP')
      throw new EngineError('rejected', 'the image is a symbolic link, not a regular file')
    throw error
  })
  if (handle && !(await handle.stat()).isFile()) {
    await handle.close()
    throw new EngineError('rejected', 'the image is not a regular file')
  }
  return handle
}

/**
 * Reads the header without QEMU's programs, which would open the backing or data file that a crafted image
 * names. The format is never guessed, because a guest controls the content of a raw image. An image that
 * begins like another format is rejected.
 */
export async function describeImage(
  handle: FileHandle,
  format: ImageFormat,
  { mayReferToBase = false } = {},
): Promise<ImageDescription> {
  const header = Buffer.alloc(headerBytes)
  await handle.read(header, 0, headerBytes, 0)
  const isQcow2 = header.readUInt32BE(0) === qcow2Magic
  const start = header.toString('latin1')
  if (foreignMagics.some((magic) => start.startsWith(magic)))
    throw new EngineError(
      'rejected',
      'the image has an unsupported format; convert it to qcow2 or raw with qemu-img convert',
    )
  if (isQcow2 !== (format === 'qcow2'))
    throw new EngineError(
      'rejected',
      `the image is not ${format}, but ${isQcow2 ? 'qcow2' : 'another format'}`,
    )
  if (format === 'raw') return { format, virtualSizeGib: inGib(BigInt((await handle.stat()).size)) }
  const version = header.readUInt32BE(4)
  if (version !== 2 && version !== 3)
    throw new EngineError('rejected', `qcow2 version ${version} is not supported. Supported: 2, 3.`)
  const incompatible = version === 3 ? header.readBigUInt64BE(72) : 0n
  const hasBase = header.readBigUInt64BE(8) !== 0n
  if ((hasBase && !mayReferToBase) || (incompatible & ~selfContainedFeatures) !== 0n)
    throw new EngineError('rejected', 'the image refers to another file')
  if (header.readUInt32BE(32) !== 0) throw new EngineError('rejected', 'the image is encrypted')
  return { format: 'qcow2', virtualSizeGib: inGib(header.readBigUInt64BE(24)) }
}

/**
 * Checks a disk that a VM has written, before QEMU's programs open it with the server's rights. With
 * `mayReferToBase`, the header may name a base image, as in an OS disk; the caller must then specify the base
 * explicitly.
 */
export async function describeFile(
  file: string,
  format: ImageFormat = 'qcow2',
  options: { mayReferToBase?: boolean } = {},
): Promise<ImageDescription> {
  const handle = await openPlainFile(file)
  if (!handle) throw new EngineError('missing', 'the image file does not exist')
  try {
    return await describeImage(handle, format, options)
  } finally {
    await handle.close()
  }
}

function inGib(bytes: bigint): number {
  if (bytes > maxVirtualBytes) throw new EngineError('rejected', 'the image is larger than 64 TiB')
  return Math.ceil(Number(bytes) / 1024 ** 3)
}
