import { createHash, randomBytes } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'

/** What Incus calls a split image: a tarball with its metadata, and the disk. */
export interface SplitImage {
  metadata: Buffer
  disk: FileHandle
}

/** Fixed, so that the same disk has the same metadata and fingerprint everywhere. */
const creationDate = 1_700_000_000
const block = 512

/** Returns the metadata tarball. `sha256` is the checksum of the file that the operator imported. */
export const metadataOf = (architecture: string, sha256: string): Buffer =>
  tarOf(
    'metadata.yaml',
    JSON.stringify({
      ...{ architecture, creation_date: creationDate },
      properties: { description: 'Imported by Slipway', 'slipway.sha256': sha256 },
    }),
  )

/** Returns the name that Incus gives to an image: the hash of the metadata followed by the disk. */
export async function fingerprintOf({ metadata, disk }: SplitImage): Promise<string> {
  const hash = createHash('sha256').update(metadata)
  for await (const chunk of contentOf(disk)) hash.update(chunk)
  return hash.digest('hex')
}

/** A multipart form that can be sent more than once. */
export function formOf({ metadata, disk }: SplitImage): {
  type: string
  content: () => AsyncIterable<Buffer>
} {
  const boundary = `slipway-${randomBytes(16).toString('hex')}`
  const part = (name: string) =>
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="${name}"\r\n` +
        'Content-Type: application/octet-stream\r\n\r\n',
    )
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    async *content() {
      yield Buffer.concat([part('metadata'), metadata, Buffer.from('\r\n'), part('rootfs.img')])
      yield* contentOf(disk)
      yield Buffer.from(`\r\n--${boundary}--\r\n`)
    },
  }
}

const contentOf = (disk: FileHandle): AsyncIterable<Buffer> =>
  disk.createReadStream({ start: 0, autoClose: false, highWaterMark: 1024 * 1024 })

/** A tarball (ustar) of one file. */
function tarOf(name: string, text: string): Buffer {
  const content = Buffer.from(text)
  const header = Buffer.alloc(block)
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`
  header.write(name, 0)
  header.write(`${octal(0o644, 7)}${octal(0, 7)}${octal(0, 7)}`, 100)
  header.write(`${octal(content.length, 11)}${octal(creationDate, 11)}`, 124)
  // In the checksum, the checksum field itself counts as spaces.
  header.write(' '.repeat(8), 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  header.write(
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    ),
    148,
  )
  const padding = Buffer.alloc((block - (content.length % block)) % block)
  return Buffer.concat([header, content, padding, Buffer.alloc(2 * block)])
}
