import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'

/** A master key of a deployment, which encrypts secrets that the service must be able to read again. */
export interface SecretKey {
  /** Identifies the key without revealing anything about it. */
  id: string
  bytes: Buffer
}

/** The keys of a deployment. There is more than one after a rotation. */
export interface SecretKeys {
  /** The key that encrypts new secrets. */
  readonly newest: SecretKey
  find(id: string): SecretKey | undefined
}

export const secretKeyBytes = 32
const idBytes = 8
const nonceBytes = 12
const tagBytes = 16

export class WrongSecretKeyError extends Error {}

export function secretKeyOf(bytes: Buffer): SecretKey {
  if (bytes.length !== secretKeyBytes) throw new Error(`a secret key must have ${secretKeyBytes} bytes`)
  const digest = createHash('sha256').update('slipway secret key id').update(bytes).digest()
  return { id: digest.subarray(0, idBytes).toString('hex'), bytes }
}

/**
 * Encrypts the text with AES-256-GCM. The result begins with the key's id, which is authenticated as well.
 */
export function sealSecret({ newest }: SecretKeys, text: string): Buffer {
  const id = Buffer.from(newest.id, 'hex')
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', newest.bytes, nonce).setAAD(id)
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([id, nonce, cipher.getAuthTag(), sealed])
}

export const sealedKeyId = (sealed: Buffer): string => sealed.subarray(0, idBytes).toString('hex')

/** Throws if the key is unknown or the data was changed. */
export function openSecret(keys: SecretKeys, sealed: Buffer): string {
  const id = sealedKeyId(sealed)
  const key = keys.find(id)
  if (!key)
    throw new WrongSecretKeyError(
      `the secret is encrypted with the secret key ${id}, which this process does not have; its newest key is ${keys.newest.id}`,
    )
  const nonceEnd = idBytes + nonceBytes
  const decipher = createDecipheriv('aes-256-gcm', key.bytes, sealed.subarray(idBytes, nonceEnd), {
    authTagLength: tagBytes,
  })
  decipher.setAAD(sealed.subarray(0, idBytes))
  decipher.setAuthTag(sealed.subarray(nonceEnd, nonceEnd + tagBytes))
  const text = Buffer.concat([decipher.update(sealed.subarray(nonceEnd + tagBytes)), decipher.final()])
  return text.toString('utf8')
}
