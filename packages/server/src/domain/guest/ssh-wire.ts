/** The string type of SSH messages and keys: a length in four bytes, then the content. */
export const sshString = (content: Buffer | string): Buffer => {
  const bytes = Buffer.from(content)
  return Buffer.concat([uint32(bytes.length), bytes])
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Encodes an unsigned number without leading zero bytes, except for one if the highest bit would otherwise be set. */
export function mpint(value: Buffer): Buffer {
  const start = value.findIndex((byte) => byte !== 0)
  if (start === -1) return uint32(0)
  const bytes = value.subarray(start)
  return sshString(bytes[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes)
}

/** Reads the parts of a message in order; throws if the message is too short. */
export class SshReader {
  readonly #bytes: Buffer
  #at = 0
  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  string(): Buffer {
    const start = this.#at + 4
    const end = start + (start <= this.#bytes.length ? this.#bytes.readUInt32BE(this.#at) : 0)
    if (end > this.#bytes.length) throw new RangeError('the SSH message is too short')
    this.#at = end
    return this.#bytes.subarray(start, end)
  }
}
