import { createHmac } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * `slp_<8>_<43>`: a public part that identifies the key and its row, and a secret of 37 random characters (220 bits) followed
 * by a checksum of 6 characters over everything before it. The checksum lets secret scanners recognize keys, and lets the
 * server reject a mistyped key without a database query.
 */
const shape = /^slp_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}$/
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const prefixChars = 8
const randomChars = 37
const checksumChars = 6
/**
 * Bytes of this value or higher are discarded, because they would make some characters more likely than
 * others.
 */
const fairBytes = 256 - (256 % alphabet.length)

function randomText(length: number, random: (n: number) => Uint8Array): string {
  let text = ''
  while (text.length < length) {
    for (const byte of random(length - text.length)) {
      if (byte < fairBytes) text += alphabet[byte % alphabet.length]
    }
  }
  return text
}

function checksumOf(text: string): string {
  let rest = crc32(text)
  let checksum = ''
  for (let i = 0; i < checksumChars; i++) {
    checksum = alphabet[rest % alphabet.length] + checksum
    rest = Math.floor(rest / alphabet.length)
  }
  return checksum
}

/** `random` returns n cryptographically random bytes. */
export function newAccessKey(random: (n: number) => Uint8Array): { text: string; prefix: string } {
  const prefix = randomText(prefixChars, random)
  const body = `slp_${prefix}_${randomText(randomChars, random)}`
  return { text: body + checksumOf(body), prefix }
}

export function isAccessKeyShape(text: string): boolean {
  return shape.test(text) && checksumOf(text.slice(0, -checksumChars)) === text.slice(-checksumChars)
}

/**
 * Returns the secret of a signing key, in base64url. The secret is derived from the access key and does not reveal that key,
 * so it can sign requests but is not a bearer token.
 */
export const signingSecretOf = (accessKey: string): string =>
  createHmac('sha256', accessKey).update('slipway signing secret').digest('base64url')
