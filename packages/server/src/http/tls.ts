import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext } from 'node:tls'
import { ConfigError } from '../config/index.ts'
import type { Services } from '../services.ts'

/** How soon a renewed certificate is taken up. Polling also sees links that are turned, as certbot does. */
const lookMs = 1_000

interface TlsFiles {
  tlsCertFile: string
  tlsKeyFile: string
}

/** Certificate and key of the server; null when it speaks plain HTTP. */
export function readTls({ tlsCertFile, tlsKeyFile }: TlsFiles): { cert: Buffer; key: Buffer } | null {
  if (!tlsCertFile) return null
  try {
    const pair = { cert: readFileSync(tlsCertFile), key: readFileSync(tlsKeyFile) }
    createSecureContext(pair)
    return pair
  } catch (error) {
    throw new ConfigError(
      `server.tls_cert_file, server.tls_key_file: cannot be used: ${(error as Error).message}`,
    )
  }
}

/**
 * Takes up renewed files for new connections; returns the way to stop. While the two do not fit each other, since one is
 * written before the other, the old pair serves on.
 */
export function watchTls(files: TlsFiles, server: Server, log: Services['log']): () => void {
  const reload = () => {
    try {
      server.setSecureContext(readTls(files)!)
      log.info({ file: files.tlsCertFile }, 'the renewed TLS certificate is in use')
    } catch (error) {
      log.warn({ err: error }, 'the changed TLS files cannot be used: the certificate before them serves on')
    }
  }
  const paths = [files.tlsCertFile, files.tlsKeyFile]
  for (const path of paths) watchFile(path, { interval: lookMs, persistent: false }, reload)
  return () => {
    for (const path of paths) unwatchFile(path, reload)
  }
}
