import {
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  randomBytes,
  verify,
} from 'node:crypto'
import { ed25519KeyOf, hostKeyBlob } from '../../../domain/guest/host-key.ts'
import { mpint, SshReader, sshString, uint32 } from '../../../domain/guest/ssh-wire.ts'

const clientVersion = 'SSH-2.0-slipway'
const messages = { kexInit: 20, exchangeInit: 30, exchangeReply: 31, disconnect: 1 } as const
const keyBytes = 32
const spkiPrefix = Buffer.from('302a300506032b656e032100', 'hex')
/** More than any SSH server sends during a key exchange. */
const maxBytes = 256 * 1024

interface Step {
  send: Buffer
  /** `stranger` is also the verdict if the server does not prove any key. */
  verdict?: 'proven' | 'stranger'
}

/**
 * The part of an SSH client that checks whether the server has the expected host key: version strings,
 * algorithm proposals, one key exchange (RFC 4253, 5656 and 8731) and the server's signature. The connection
 * cannot be used after that.
 */
export class HostKeyProbe {
  readonly #expected: Buffer
  readonly #pair = generateKeyPairSync('x25519')
  readonly #point = this.#pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-keyBytes)
  readonly #proposal = proposal()
  #unread = Buffer.alloc(0)
  #serverVersion = ''
  #serverProposal = Buffer.alloc(0)
  #total = 0

  constructor(hostKey: string) {
    this.#expected = hostKeyBlob({ publicKey: hostKey })
  }

  /** Processes received bytes, and returns what to send. Throws if they are not SSH. */
  take(chunk: Buffer): Step {
    this.#total += chunk.length
    if (this.#total > maxBytes)
      throw new RangeError(`the server sent more than ${maxBytes} bytes during the key exchange`)
    this.#unread = Buffer.concat([this.#unread, chunk])
    const send: Buffer[] = []
    if (this.#serverVersion === '') {
      const end = this.#unread.indexOf('\n')
      if (end === -1) return { send: Buffer.alloc(0) }
      this.#serverVersion = this.#unread.subarray(0, end).toString('latin1').replace(/\r$/, '')
      this.#unread = this.#unread.subarray(end + 1)
      send.push(Buffer.from(`${clientVersion}\r\n`), packet(this.#proposal))
    }
    for (let payload = this.#nextPayload(); payload; payload = this.#nextPayload()) {
      if (payload[0] === messages.kexInit) {
        this.#serverProposal = Buffer.from(payload)
        send.push(packet(Buffer.concat([Buffer.of(messages.exchangeInit), sshString(this.#point)])))
      }
      if (payload[0] === messages.disconnect) return { send: Buffer.concat(send), verdict: 'stranger' }
      if (payload[0] === messages.exchangeReply)
        return { send: Buffer.concat(send), verdict: this.#isProven(payload) ? 'proven' : 'stranger' }
    }
    return { send: Buffer.concat(send) }
  }

  /** An unencrypted packet consists of its length, the padding length, the payload and the padding. */
  #nextPayload(): Buffer | undefined {
    if (this.#unread.length < 5) return undefined
    const length = this.#unread.readUInt32BE(0)
    if (length > maxBytes) throw new RangeError('the packet is too long')
    if (this.#unread.length < 4 + length) return undefined
    const payload = this.#unread.subarray(5, 4 + length - this.#unread[4]!)
    this.#unread = this.#unread.subarray(4 + length)
    return payload
  }

  #isProven(reply: Buffer): boolean {
    const reader = new SshReader(reply.subarray(1))
    const [blob, point, signature] = [reader.string(), reader.string(), reader.string()]
    const key = blob.equals(this.#expected) ? ed25519KeyOf(blob) : undefined
    if (!key) return false
    const publicKey = createPublicKey({
      key: Buffer.concat([spkiPrefix, point]),
      format: 'der',
      type: 'spki',
    })
    const secret = diffieHellman({ privateKey: this.#pair.privateKey, publicKey })
    const exchange = createHash('sha256')
    const proposals = [this.#proposal, this.#serverProposal]
    for (const part of [clientVersion, this.#serverVersion, ...proposals, blob, this.#point, point])
      exchange.update(sshString(part))
    const digest = exchange.update(mpint(secret)).digest()
    const signed = new SshReader(signature)
    return signed.string().toString() === 'ssh-ed25519' && verify(null, digest, key, signed.string())
  }
}

/** Algorithms that every current SSH server supports. The ciphers are negotiated, but never used. */
function proposal(): Buffer {
  const ciphers = 'aes128-ctr,chacha20-poly1305@openssh.com,aes256-gcm@openssh.com'
  const macs = 'hmac-sha2-256,hmac-sha1'
  const lists = [
    'curve25519-sha256,curve25519-sha256@libssh.org',
    'ssh-ed25519',
    ciphers,
    ciphers,
    macs,
    macs,
  ]
  const texts = [...lists, 'none', 'none', '', ''].map(sshString)
  return Buffer.concat([Buffer.of(messages.kexInit), randomBytes(16), ...texts, Buffer.of(0), uint32(0)])
}

function packet(payload: Buffer): Buffer {
  const padding = 8 - ((5 + payload.length) % 8)
  const paddingBytes = padding < 4 ? padding + 8 : padding
  return Buffer.concat([
    uint32(1 + payload.length + paddingBytes),
    Buffer.of(paddingBytes),
    payload,
    Buffer.alloc(paddingBytes),
  ])
}
