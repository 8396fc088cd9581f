import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Agent } from 'undici'
import type { IncusConfig } from '../../config/index.ts'

/** One way to reach Incus: the socket on this machine, or a member over HTTPS. */
export interface Connection {
  origin: string
  dispatcher: Agent
}

const connectMs = 3_000

export async function openConnections(config: IncusConfig): Promise<Connection[]> {
  if (config.urls.length === 0) {
    const dispatcher = new Agent({ connect: { socketPath: config.socket, timeout: connectMs } })
    return [{ origin: 'http://incus', dispatcher }]
  }
  const [cert, key] = await Promise.all([readFile(config.clientCertFile), readFile(config.clientKeyFile)])
  const pin = config.serverCertFile ? new X509Certificate(await readFile(config.serverCertFile)) : null
  return config.urls.map((url) => {
    const connect = { cert, key, timeout: connectMs, ...(pin && acceptOnly(pin)) }
    return { origin: url.replace(/\/$/, ''), dispatcher: new Agent({ connect }) }
  })
}

/**
 * All members of a cluster have the same certificate, which does not contain their host names. So the
 * fingerprint is compared, not the host name.
 */
const acceptOnly = (pin: X509Certificate) => ({
  ca: pin.toString(),
  checkServerIdentity: (_host: string, { fingerprint256 }: { fingerprint256: string }) =>
    fingerprint256 === pin.fingerprint256
      ? undefined
      : new Error(`the server's certificate (${fingerprint256}) is not the one in server_cert_file`),
})
