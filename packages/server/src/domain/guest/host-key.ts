import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { sshString, uint32 } from './ssh-wire.ts'

/**
 * The SSH host key of a guest. The service creates it, so that clients can verify even the first connection.
 */
export interface HostKey {
  /** `ssh-ed25519 AAAA…` */
  publicKey: string
  /** The 32-byte seed of the private key, in base64; '' once the guest has the key. */
  privateKey: string
}

const keyType = 'ssh-ed25519'
const keyBytes = 32
/** The DER prefix of an ed25519 public key. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')

export function newHostKey(): HostKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-keyBytes)
  const blob = blobOf(publicKey.export({ format: 'der', type: 'spki' }).subarray(-keyBytes))
  return { publicKey: `${keyType} ${blob.toString('base64')}`, privateKey: seed.toString('base64') }
}

const blobOf = (point: Buffer) => Buffer.concat([sshString(keyType), sshString(point)])

/** The public key in SSH's wire format. */
export const hostKeyBlob = ({ publicKey }: Pick<HostKey, 'publicKey'>): Buffer =>
  Buffer.from(publicKey.split(' ')[1] ?? '', 'base64')

const pointOf = (key: HostKey) => hostKeyBlob(key).subarray(-keyBytes)
const seedOf = ({ privateKey }: HostKey) => Buffer.from(privateKey, 'base64')

/** Parses a public key in SSH's wire format. Returns undefined if it is not an ed25519 key. */
export function ed25519KeyOf(blob: Buffer): KeyObject | undefined {
  const point = blob.subarray(-keyBytes)
  if (!blob.equals(blobOf(point))) return undefined
  return createPublicKey({ key: Buffer.concat([spkiPrefix, point]), format: 'der', type: 'spki' })
}

/** Returns the private key in OpenSSH's own file format, the only format that all versions of OpenSSH read. */
export function openSshPrivateKey(key: HostKey): string {
  const check = randomBytes(4)
  const secret = [
    sshString(keyType),
    sshString(pointOf(key)),
    sshString(Buffer.concat([seedOf(key), pointOf(key)])),
  ]
  const unpadded = Buffer.concat([check, check, ...secret, sshString('')])
  const padding = Buffer.from(
    Array.from({ length: (8 - (unpadded.length % 8)) % 8 }, (_, index) => index + 1),
  )
  const file = Buffer.concat([
    ...[Buffer.from('openssh-key-v1\0'), sshString('none'), sshString('none'), sshString('')],
    ...[uint32(1), sshString(hostKeyBlob(key)), sshString(Buffer.concat([unpadded, padding]))],
  ])
  const lines = file.toString('base64').match(/.{1,70}/g)!
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n')
}

/** Returns the private key in dropbear's file format. */
export const dropbearPrivateKey = (key: HostKey): Buffer =>
  Buffer.concat([sshString(keyType), sshString(Buffer.concat([seedOf(key), pointOf(key)]))])
