/** The parts that SSH's messages and keys are made of: a length in four bytes, then that many. */
export const sshString = (content: Buffer | string): Buffer => {
  const bytes = Buffer.from(content)
  return Buffer.concat([uint32(bytes.length), bytes])
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A number without a sign, as SSH writes numbers: without leading zeros, and not to be taken for a negative one. */
export function mpint(value: Buffer): Buffer {
  const start = value.findIndex((byte) => byte !== 0)
  if (start === -1) return uint32(0)
  const bytes = value.subarray(start)
  return sshString(bytes[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes)
}

/** Takes the parts of a message one after the other; throws where it ends too early. */
export class SshReader {
  readonly #bytes: Buffer
  #at = 0
  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  string(): Buffer {
    const start = this.#at + 4
    if (start > this.#bytes.length) throw new RangeError('the message ends before its time')
    const end = start + this.#bytes.readUInt32BE(this.#at)
    if (end > this.#bytes.length) throw new RangeError('the message ends before its time')
    this.#at = end
    return this.#bytes.subarray(start, end)
  }
}
