import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Config } from '../config/index.ts'
import { type Finding, missing, ok, warning } from '../engines/incus/operate/finding.ts'

const dayMs = 86_400_000
const soonDays = 14

/** Checks what clients see: the certificate, or that a proxy has one. */
export async function certificateFindings(server: Config['server']): Promise<Finding[]> {
  const { tlsCertFile, tlsKeyFile, publicUrl, host, trustedProxies } = server
  const isLoopback = /^(localhost|127\.|::1$)/.test(host)
  if (tlsCertFile !== '') return [certificateFinding(tlsCertFile, tlsKeyFile, publicUrl)]
  if (!isLoopback && trustedProxies.length === 0)
    return [
      missing(
        'TLS',
        `the service listens on ${host} without TLS: passwords and keys can be read on the network`,
        'set tls_cert_file and tls_key_file, or put a proxy in front (docs/operate/internet.md)',
      ),
    ]
  if (publicUrl === '')
    return [
      warning(
        'TLS',
        'no public_url: links in e-mails and responses have the listen address',
        'set [server] public_url to the URL that clients use',
      ),
    ]
  return [ok('TLS', publicUrl.startsWith('https:') ? `a proxy serves ${publicUrl}` : `off, for ${publicUrl}`)]
}

function certificateFinding(certFile: string, keyFile: string, publicUrl: string): Finding {
  const step = 'TLS'
  const advice = 'renew the certificate; both files are read again when they change'
  try {
    const certificate = new X509Certificate(readFileSync(certFile))
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(keyFile))))
      return missing(step, `${keyFile} is not the key of ${certFile}`, 'use the two files of one certificate')
    const leftDays = Math.floor((Date.parse(certificate.validTo) - Date.now()) / dayMs)
    if (leftDays < 0) return missing(step, `${certFile} expired on ${certificate.validTo}`, advice)
    const hostname = publicUrl === '' ? '' : new URL(publicUrl).hostname.replace(/^\[|\]$/g, '')
    const isCovered = isIP(hostname) ? certificate.checkIP(hostname) : certificate.checkHost(hostname)
    if (hostname !== '' && !isCovered)
      return missing(
        step,
        `${certFile} is not for ${hostname}`,
        'use a certificate for the name in public_url',
      )
    if (leftDays < soonDays) return warning(step, `${certFile} expires in ${leftDays} days`, advice)
    return ok(step, `${certFile}, valid until ${certificate.validTo}`)
  } catch (error) {
    return missing(step, (error as Error).message, 'check tls_cert_file and tls_key_file')
  }
}
