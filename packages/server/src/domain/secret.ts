import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto'

/** A plain digest is enough, because secrets that the service issues are long and random. */
export const hashSecret = (secret: string): Buffer => hash('sha256', secret, 'buffer')
export const digestOf = (secret: string): string => hash('sha256', secret, 'base64')

const tokenPrefixes = {
  access: 'slpa_',
  refresh: 'slpr_',
  code: 'slpc_',
  billing: 'slpb_',
  console: 'slpt_',
} as const

/** Returns a prefix for the kind of token, followed by 256 random bits in 43 characters. */
export const newToken = (kind: keyof typeof tokenPrefixes): string =>
  tokenPrefixes[kind] + randomBytes(32).toString('base64url')

/** Encrypts with AES-256-GCM and a key that is derived from `secret`. */
export function seal(secret: string, text: string): Buffer {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', deriveKey(secret), nonce)
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
}

export function open(secret: string, sealed: Buffer): string {
  const decipher = createDecipheriv('aes-256-gcm', deriveKey(secret), sealed.subarray(0, 12), {
    authTagLength: 16,
  })
  decipher.setAuthTag(sealed.subarray(12, 28))
  return Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString('utf8')
}

const deriveKey = (secret: string) =>
  Buffer.from(hkdfSync('sha256', secret, '', 'slipway remembered answer', 32))
