import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto'

/** Secrets that we hand out are random and long, so that a plain digest of one neither tells nor is guessed. */
export const hashSecret = (secret: string): Buffer => hash('sha256', secret, 'buffer')
/** The same digest as text. */
export const digestOf = (secret: string): string => hash('sha256', secret, 'base64')

const tokenPrefixes = { access: 'slpa_', refresh: 'slpr_', code: 'slpc_', billing: 'slpb_' } as const

/** 256 random bits in 43 characters, after a prefix that tells what it is for. */
export const newToken = (kind: keyof typeof tokenPrefixes): string =>
  tokenPrefixes[kind] + randomBytes(32).toString('base64url')

/** AES-256-GCM under a key that only the holder of `secret` can derive. */
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
