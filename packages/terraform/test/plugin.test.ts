import { connect } from 'node:tls'
import { type Program, startProgram } from '@slipway/testing/program.ts'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { createCertificate } from '../src/wire/certificate.ts'
import { buildProvider } from './support/terraform.ts'

const cookie = 'd602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2'
const terraform = createCertificate()
let program: string

beforeAll(async () => {
  program = await buildProvider()
})

/** Starts the provider as Terraform does, and returns its address and certificate. */
async function startProvider() {
  const env = {
    TF_PLUGIN_MAGIC_COOKIE: cookie,
    PLUGIN_PROTOCOL_VERSIONS: '5,6',
    PLUGIN_CLIENT_CERT: terraform.certificatePem,
  }
  const provider: Program = startProgram(program, [], { env })
  onTestFinished(() => provider.kill())
  const [core, plugin, network, address, kind, certificate] = (await provider.until(/\n/)).trim().split('|')
  expect([core, plugin, network, kind]).toEqual(['1', '6', 'tcp', 'grpc'])
  const base64 = Buffer.from(certificate!, 'base64').toString('base64')
  const ca = `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`
  return { port: Number(address!.split(':')[1]), ca }
}

/**
 * Returns whether the provider accepts a client with this certificate. With TLS 1.3, a client learns only after
 * the handshake that its certificate was rejected.
 */
function isAccepted(port: number, ca: string, client?: typeof terraform): Promise<boolean> {
  return new Promise((resolve) => {
    const identity = client ? { key: client.keyPem, cert: client.certificatePem } : {}
    const socket = connect({
      host: '127.0.0.1',
      port,
      servername: 'localhost',
      ca,
      ALPNProtocols: ['h2'],
      ...identity,
    })
    const end = (result: boolean) => {
      socket.destroy()
      resolve(result)
    }
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
    // The server begins an HTTP/2 connection with its settings.
    socket.once('data', () => end(true))
  })
}

test('only the process that started the provider can call it', async () => {
  const { port, ca } = await startProvider()
  expect(await isAccepted(port, ca, terraform)).toBe(true)
  expect(await isAccepted(port, ca)).toBe(false)
  expect(await isAccepted(port, ca, createCertificate())).toBe(false)
})

test('a user who starts the provider directly gets an explanation', async () => {
  const { code, errors } = await startProgram(program, []).ended()
  expect(code).toBe(1)
  expect(errors).toContain('This program is a Terraform provider.')
})
