import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/**
 * Creates a new key and a self-signed certificate for `localhost`. They protect the connection between
 * Terraform and one run of the provider, and are never written to a file. Node cannot create certificates, so
 * the few DER structures are built here.
 */
export function createCertificate(): { keyPem: string; certificateDer: Buffer; certificatePem: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const signatureAlgorithm = sequence(oid('2a8648ce3d040302')) // ecdsa-with-SHA256
  const name = sequence(set(sequence(oid('550403'), utf8('localhost')))) // common name
  const dayMs = 86_400_000
  const toBeSigned = sequence(
    element(0xa0, integer(Buffer.from([2]))), // X.509 version 3
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])), // a positive serial number
    signatureAlgorithm,
    name,
    sequence(time(Date.now() - dayMs), time(Date.now() + 30 * dayMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    element(
      0xa3,
      sequence(
        extension('551d13', sequence(element(0x01, Buffer.from([0xff])))), // basic constraints: is a CA
        extension('551d0f', element(0x03, Buffer.from([2, 0x84]))), // key usage: sign data and certificates
        extension('551d25', sequence(oid('2b06010505070301'), oid('2b06010505070302'))), // TLS server and client
        extension('551d11', sequence(element(0x82, Buffer.from('localhost')))), // alternative name
      ),
    ),
  )
  const certificateDer = sequence(
    toBeSigned,
    signatureAlgorithm,
    bits(sign('sha256', toBeSigned, privateKey)),
  )
  const base64 = certificateDer.toString('base64').replace(/.{64}/g, '$&\n')
  return {
    keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificateDer,
    certificatePem: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
  }
}

function element(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: Buffer[]) => element(0x30, ...parts)
const set = (...parts: Buffer[]) => element(0x31, ...parts)
const integer = (bytes: Buffer) => element(0x02, bytes)
const oid = (hex: string) => element(0x06, Buffer.from(hex, 'hex'))
const utf8 = (text: string) => element(0x0c, Buffer.from(text))
const bits = (bytes: Buffer) => element(0x03, Buffer.from([0]), bytes)
const extension = (id: string, value: Buffer) => sequence(oid(id), element(0x04, value))
/** Years after 2049 need another format, but these certificates are valid for only a month. */
const time = (at: number) =>
  element(0x17, Buffer.from(`${new Date(at).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`))
