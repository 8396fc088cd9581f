import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext } from 'node:tls'
import { ConfigError } from '../config/index.ts'
import type { Services } from '../services.ts'

/** Polling also notices changed symbolic links, such as those of certbot. */
const pollMs = 1_000

interface TlsFiles {
  tlsCertFile: string
  tlsKeyFile: string
}

/** Returns certificate and key; null for plain HTTP. */
export function readTls({ tlsCertFile, tlsKeyFile }: TlsFiles): { cert: Buffer; key: Buffer } | null {
  if (!tlsCertFile) return null
  try {
    const pair = { cert: readFileSync(tlsCertFile), key: readFileSync(tlsKeyFile) }
    createSecureContext(pair)
    return pair
  } catch (error) {
    throw new ConfigError(
      `server.tls_cert_file, server.tls_key_file: not usable: ${(error as Error).message}`,
    )
  }
}

/**
 * Uses renewed files for new connections. Returns a function that stops watching the files. While certificate
 * and key do not match, because one is written before the other, the old pair stays in use.
 */
export function watchTls(files: TlsFiles, server: Server, log: Services['log']): () => void {
  const reload = () => {
    try {
      server.setSecureContext(readTls(files)!)
      log.info({ file: files.tlsCertFile }, 'TLS certificate reloaded')
    } catch (error) {
      log.warn({ err: error }, 'changed TLS files are not usable; the previous certificate stays in use')
    }
  }
  const paths = [files.tlsCertFile, files.tlsKeyFile]
  for (const path of paths) watchFile(path, { interval: pollMs, persistent: false }, reload)
  return () => {
    for (const path of paths) unwatchFile(path, reload)
  }
}
