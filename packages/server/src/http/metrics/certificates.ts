import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Config } from '../../config/index.ts'

interface CertificateExpiry {
  /**
   * `api` is the certificate that clients of this service see; the others authenticate this service and an
   * Incus cluster to each other.
   */
  use: 'api' | 'incus_client' | 'incus_server'
  location: string
  seconds: number
}

/** Returns when the certificates in the configured files expire. A file that cannot be read is left out. */
export async function certificateExpiries({ server, locations }: Config): Promise<CertificateExpiry[]> {
  const files = [
    { use: 'api' as const, location: '', file: server.tlsCertFile },
    ...locations.flatMap((location) => {
      if (location.engine !== 'incus' || location.incus.urls.length === 0) return []
      const { clientCertFile, serverCertFile } = location.incus
      return [
        { use: 'incus_client' as const, location: location.name, file: clientCertFile },
        { use: 'incus_server' as const, location: location.name, file: serverCertFile },
      ]
    }),
  ].filter(({ file }) => file !== '')
  const read = files.map(async ({ use, location, file }) => {
    const { validTo } = new X509Certificate(await readFile(file))
    return { use, location, seconds: Date.parse(validTo) / 1000 }
  })
  const expiries = await Promise.allSettled(read)
  return expiries.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}
