/**
 * A parser for one line with an OpenSSH public key, which checks every byte. It also runs in browsers, so it
 * does not use Buffer. In the key data, each part is a 4-byte big-endian length followed by that many bytes.
 */

/** The result of parsing a key. */
export type SshKey =
  | { ok: true; type: string; bits: number; comment: string }
  | { ok: false; problem: string }

const maxLineChars = 16_384
const minRsaBits = 2048
const maxRsaBits = 16_384
const ed25519KeyBytes = 32
const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

class Malformed extends Error {}

/** Reads the parts of the key data in order. */
class Parts {
  private readonly bytes: Uint8Array
  private at = 0
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  next(what: string): Uint8Array {
    const start = this.at + 4
    if (start > this.bytes.length) throw new Malformed(`the key data ends before its ${what}`)
    const length = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, 4).getUint32(0)
    if (length > this.bytes.length - start) throw new Malformed(`the key data ends inside its ${what}`)
    this.at = start + length
    return this.bytes.subarray(start, this.at)
  }

  text(what: string): string {
    return Array.from(this.next(what), (byte) => String.fromCharCode(byte)).join('')
  }

  /** Reads a positive number in its shortest form. A leading zero byte is allowed only before a high bit. */
  positive(what: string): { bytes: Uint8Array; bits: number } {
    const bytes = this.next(what)
    const [first = 0, second = 0] = bytes
    if (bytes.length === 0 || first >= 0x80) throw new Malformed(`its ${what} is not a positive number`)
    if (first === 0 && second < 0x80) throw new Malformed(`its ${what} is not in the shortest form`)
    return { bytes, bits: (bytes.length - 1) * 8 + (32 - Math.clz32(first)) }
  }

  end(): void {
    if (this.at !== this.bytes.length) throw new Malformed('there are more bytes after the key data')
  }
}

function readEd25519(parts: Parts): number {
  if (parts.next('public key').length !== ed25519KeyBytes) {
    throw new Malformed('an ed25519 key has exactly 32 bytes')
  }
  return 256
}

function readEcdsa(curve: string, bits: number) {
  return (parts: Parts): number => {
    if (parts.text('curve name') !== curve) throw new Malformed(`its curve is not ${curve}`)
    const point = parts.next('point')
    if (point[0] !== 4 || point.length !== 1 + 2 * Math.ceil(bits / 8)) {
      throw new Malformed(`its point is not an uncompressed point of ${curve}`)
    }
    return bits
  }
}

function readRsa(parts: Parts): number {
  const exponent = parts.positive('exponent')
  const isOdd = (exponent.bytes.at(-1)! & 1) === 1
  if (exponent.bits < 2 || !isOdd) throw new Malformed('its exponent is not an odd number above 1')
  const modulus = parts.positive('modulus')
  if (modulus.bits < minRsaBits) {
    throw new Malformed(`an rsa key needs at least ${minRsaBits} bits, this one has ${modulus.bits}`)
  }
  if (modulus.bits > maxRsaBits) throw new Malformed(`an rsa key has at most ${maxRsaBits} bits`)
  if ((modulus.bytes.at(-1)! & 1) === 0) throw new Malformed('its modulus is an even number')
  return modulus.bits
}

/** Reads the key of a security token, whose data ends with the name of an application. */
function onToken(read: (parts: Parts) => number) {
  return (parts: Parts): number => {
    const bits = read(parts)
    if (parts.next('application').length === 0) throw new Malformed('its application is empty')
    return bits
  }
}

const readers: Record<string, (parts: Parts) => number> = {
  'ssh-ed25519': readEd25519,
  'ecdsa-sha2-nistp256': readEcdsa('nistp256', 256),
  'ecdsa-sha2-nistp384': readEcdsa('nistp384', 384),
  'ecdsa-sha2-nistp521': readEcdsa('nistp521', 521),
  'ssh-rsa': readRsa,
  'sk-ssh-ed25519@openssh.com': onToken(readEd25519),
  'sk-ecdsa-sha2-nistp256@openssh.com': onToken(readEcdsa('nistp256', 256)),
}

export const sshKeyTypes: readonly string[] = Object.keys(readers)

/** Checks the format of the line only; `parseSshPublicKey` also checks the key data. */
export const sshKeyPattern = `^(${sshKeyTypes.map((type) => type.replaceAll('.', '\\.')).join('|')}) [A-Za-z0-9+/]+={0,2}( [^\\r\\n]*)?(\\r?\\n)?$`

/** Removes the line break at the end; guests get the key without it. */
export const sshKeyLine = (text: string): string => text.replace(/\r?\n$/, '')

/** Requires padding and zero spare bits, so that each key has exactly one encoding. */
function decodeBase64(text: string): Uint8Array {
  if (text === '' || !base64Pattern.test(text)) throw new Malformed('the key data is not valid base64')
  const binary = atob(text)
  if (btoa(binary) !== text) throw new Malformed('the key data is not valid base64')
  return Uint8Array.from(binary, (char) => char.charCodeAt(0))
}

function hasControlCharacter(text: string): boolean {
  for (const char of text) {
    const code = char.codePointAt(0)!
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0x2028 || code === 0x2029) return true
  }
  return false
}

/**
 * Parses a public key, and ignores one line break at its end. `problem` completes a sentence that begins with
 * the name of the field.
 */
export function parseSshPublicKey(given: string): SshKey {
  const text = sshKeyLine(given)
  const reject = (problem: string): SshKey => ({ ok: false, problem })
  if (given.length > maxLineChars) return reject(`must have at most ${maxLineChars} characters`)
  if (text.includes('PRIVATE KEY')) {
    return reject('is a private key; send the public key, from the file that ends in .pub')
  }
  if (hasControlCharacter(text)) return reject('must be one line without tabs or other control characters')
  const [type = '', data = '', ...rest] = text.split(' ')
  const read = Object.hasOwn(readers, type) ? readers[type] : undefined
  if (!read) {
    return reject(`must be one line that starts with a key type: ${sshKeyTypes.join(', ')}`)
  }
  try {
    const parts = new Parts(decodeBase64(data))
    if (parts.text('type') !== type) throw new Malformed(`the key data is not of type ${type}`)
    const bits = read(parts)
    parts.end()
    return { ok: true, type, bits, comment: rest.join(' ') }
  } catch (error) {
    if (error instanceof Malformed) return reject(`is not a valid public key: ${error.message}`)
    throw error
  }
}
