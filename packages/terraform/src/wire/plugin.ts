import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'
import { createCertificate } from './certificate.ts'
import { type CallName, controllerService, providerService } from './messages.ts'

/** Terraform sets this variable. If it is not set, a user has started the provider directly. */
const cookie = [
  'TF_PLUGIN_MAGIC_COOKIE',
  'd602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2',
] as const
const protocol = { core: 1, plugin: 6 }

export type Handlers = Record<CallName, (request: never) => Promise<object>>

/**
 * Serves Terraform's calls until Terraform stops the provider. Terraform reads one line from standard output,
 * with the protocol versions, the address and the certificate to expect. Only the process that started this
 * one can connect, because only that process has the private key for `PLUGIN_CLIENT_CERT`.
 */
export async function servePlugin(handlers: Handlers, env: NodeJS.ProcessEnv): Promise<void> {
  const { PLUGIN_CLIENT_CERT: clientCertificate, PLUGIN_PROTOCOL_VERSIONS: versions = '6' } = env
  if (env[cookie[0]] !== cookie[1] || !clientCertificate)
    return fail('This program is a Terraform provider. Terraform starts it; see docs/guides/terraform.md.')
  if (!versions.split(',').includes(String(protocol.plugin)))
    return fail('This provider needs Terraform 1.0 or later (plugin protocol 6).')

  const { keyPem, certificateDer, certificatePem } = createCertificate()
  const credentials = ServerCredentials.createSsl(
    Buffer.from(clientCertificate),
    [{ private_key: Buffer.from(keyPem), cert_chain: Buffer.from(certificatePem) }],
    true,
  )
  const server = new Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 })
  server.addService(providerService, unaryCalls(handlers))
  const shutDown = async () => {
    setImmediate(() => server.tryShutdown(() => process.exit(0)))
    return {}
  }
  server.addService(controllerService, unaryCalls({ Shutdown: shutDown }))
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound)))
  })
  const certificate = certificateDer.toString('base64').replace(/=+$/, '')
  // Ctrl-C reaches the whole process group. Terraform then calls StopProvider and waits for the current
  // calls.
  process.on('SIGINT', () => {})
  endWithParent()
  process.stdout.write(`${protocol.core}|${protocol.plugin}|tcp|127.0.0.1:${port}|grpc|${certificate}\n`)
}

/** Ends this process soon after Terraform was killed, because Terraform can no longer stop it. */
function endWithParent(): void {
  const parent = process.ppid
  setInterval(() => process.ppid === parent || process.exit(1), 2_000).unref()
}

function unaryCalls(handlers: Record<string, (request: never) => Promise<object>>) {
  const entries = Object.entries(handlers).map(([name, handle]) => {
    const call = ({ request }: ServerUnaryCall<never, object>, respond: sendUnaryData<object>) => {
      handle(request).then(
        (response) => respond(null, response),
        (error) => respond({ code: 13, details: error instanceof Error ? error.message : String(error) }),
      )
    }
    return [name, call]
  })
  return Object.fromEntries(entries)
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}
