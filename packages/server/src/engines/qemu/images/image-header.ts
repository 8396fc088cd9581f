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
/** Dirty, corrupt, compression type and extended L2 entries. What is absent is the external data file. */
const selfContainedFeatures = 0b11011n
const maxVirtualBytes = 64n * 1024n ** 4n
const foreignMagics = ['KDMV', '# Disk DescriptorFile', 'vhdxfile', 'conectix', 'QED\0', '<<< ']

/**
 * Opens what has to be a plain file: a link or device in its place would have us read something else of the host.
 * What is learned of the file has to come from this handle.
 */
export async function openPlainFile(file: string): Promise<FileHandle | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await open(file, flags).catch((error: NodeJS.ErrnoException) => {
    if (isMissing(error)) return null
    if (error.code === 'ELOOP') throw new EngineError('rejected', 'the image is a link, not a file')
    throw error
  })
  if (handle && !(await handle.stat()).isFile()) {
    await handle.close()
    throw new EngineError('rejected', 'the image is not a plain file')
  }
  return handle
}

/**
 * Reads the header by itself: QEMU's own programs would open what a crafted image names (a backing file, a data file)
 * in the course of describing it, and guess at the format of a raw image whose content its guest may choose.
 */
export async function describeImage(handle: FileHandle): Promise<ImageDescription> {
  const header = Buffer.alloc(headerBytes)
  await handle.read(header, 0, headerBytes, 0)
  if (header.readUInt32BE(0) !== qcow2Magic) {
    const start = header.toString('latin1')
    if (foreignMagics.some((magic) => start.startsWith(magic)))
      throw new EngineError('rejected', 'images are qcow2 or raw; convert it with qemu-img convert')
    return { format: 'raw', virtualSizeGib: inGib(BigInt((await handle.stat()).size)) }
  }
  const version = header.readUInt32BE(4)
  if (version !== 2 && version !== 3)
    throw new EngineError('rejected', `qcow2 of version ${version} is not known`)
  const incompatible = version === 3 ? header.readBigUInt64BE(72) : 0n
  if (header.readBigUInt64BE(8) !== 0n || (incompatible & ~selfContainedFeatures) !== 0n)
    throw new EngineError('rejected', 'the image refers to another file')
  if (header.readUInt32BE(32) !== 0) throw new EngineError('rejected', 'the image is encrypted')
  return { format: 'qcow2', virtualSizeGib: inGib(header.readBigUInt64BE(24)) }
}

/** Also for a disk that a VM has written, before a program of QEMU is let loose on it with the server's rights. */
export async function describeFile(file: string): Promise<ImageDescription> {
  const handle = await openPlainFile(file)
  if (!handle) throw new EngineError('missing', 'there is no image')
  try {
    return await describeImage(handle)
  } finally {
    await handle.close()
  }
}

function inGib(bytes: bigint): number {
  if (bytes > maxVirtualBytes) throw new EngineError('rejected', 'the image is larger than 64 TiB')
  return Math.ceil(Number(bytes) / 1024 ** 3)
}
