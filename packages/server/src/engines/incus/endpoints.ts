import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Agent } from 'undici'
import type { IncusConfig } from '../../config/index.ts'

/** One way to reach Incus: its socket on this machine, or a member by HTTPS. */
export interface Endpoint {
  origin: string
  dispatcher: Agent
}

const connectMs = 3_000

export async function openEndpoints(
  config: Pick<IncusConfig, 'urls' | 'socket' | 'clientCertFile' | 'clientKeyFile' | 'serverCertFile'>,
): Promise<Endpoint[]> {
  if (config.urls.length === 0) {
    const dispatcher = new Agent({ connect: { socketPath: config.socket, timeout: connectMs } })
    return [{ origin: 'http://incus', dispatcher }]
  }
  const [cert, key] = await Promise.all([readFile(config.clientCertFile), readFile(config.clientKeyFile)])
  const pin = config.serverCertFile ? new X509Certificate(await readFile(config.serverCertFile)) : null
  return config.urls.map((url) => {
    const connect = { cert, key, timeout: connectMs, ...(pin && pinned(pin)) }
    return { origin: url.replace(/\/$/, ''), dispatcher: new Agent({ connect }) }
  })
}

/** The members of a cluster share one certificate, whatever their names: that very one is accepted, and no other. */
const pinned = (pin: X509Certificate) => ({
  ca: pin.toString(),
  checkServerIdentity: (_host: string, { fingerprint256 }: { fingerprint256: string }) =>
    fingerprint256 === pin.fingerprint256
      ? undefined
      : new Error(`the server presents another certificate (${fingerprint256}) than server_cert_file`),
})
