import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { Config } from '../config/index.ts'
import { type Finding, ok, problem, warning } from '../engines/incus/operate/finding.ts'

const dayMs = 86_400_000
const soonDays = 14
const connectMs = 5_000
const step = 'TLS'

/** Checks the certificate that clients see: the service's own, or that of a proxy. */
export async function certificateFindings(server: Config['server']): Promise<Finding[]> {
  const { tlsCertFile, tlsKeyFile, publicUrl, host, trustedProxies } = server
  const isLoopback = /^(localhost|127\.|::1$)/.test(host)
  if (tlsCertFile !== '') return [certificateFinding(tlsCertFile, tlsKeyFile, publicUrl)]
  if (!isLoopback && trustedProxies.length === 0)
    return [
      problem(
        step,
        `the service listens on ${host} without TLS: passwords and keys can be read on the network`,
        'set tls_cert_file and tls_key_file, or put a proxy in front (docs/operate/internet.md)',
      ),
    ]
  if (publicUrl === '')
    return [
      warning(
        step,
        'no public_url: links in e-mails and responses contain the listen address',
        'set [server] public_url to the URL that clients use',
      ),
    ]
  return [await publicFinding(publicUrl)]
}

function certificateFinding(certFile: string, keyFile: string, publicUrl: string): Finding {
  const advice = 'renew the certificate; both files are read again when they change'
  try {
    const certificate = new X509Certificate(readFileSync(certFile))
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(keyFile))))
      return problem(step, `${keyFile} is not the key of ${certFile}`, 'use the two files of one certificate')
    return (
      problemOf(certificate, certFile, publicUrl, advice) ??
      ok(step, `${certFile}, valid until ${certificate.validTo}`)
    )
  } catch (error) {
    return problem(step, (error as Error).message, 'check tls_cert_file and tls_key_file')
  }
}

/**
 * A failed connection or an untrusted certificate is only a warning, because clients may reach the proxy by a different route
 * and trust other authorities.
 */
async function publicFinding(publicUrl: string): Promise<Finding> {
  if (!publicUrl.startsWith('https:')) return ok(step, `not used by ${publicUrl}`)
  try {
    const { certificate, distrust } = await servedCertificate(new URL(publicUrl))
    const advice = 'renew the certificate of the proxy'
    const found = problemOf(certificate, `the certificate of ${publicUrl}`, publicUrl, advice)
    if (found) return found
    if (distrust !== '')
      return warning(
        step,
        `the certificate of ${publicUrl} is not trusted here: ${distrust}`,
        'if clients trust its authority, set NODE_EXTRA_CA_CERTS to the file with its certificate',
      )
    return ok(step, `a proxy serves ${publicUrl}, with a certificate valid until ${certificate.validTo}`)
  } catch (error) {
    return warning(
      step,
      `${publicUrl} cannot be reached from this machine: ${(error as Error).message}`,
      'start the proxy, and check the DNS record of the name and the firewall',
    )
  }
}

/** Returns the certificate that clients get, and why it is not trusted; '' if it is trusted. */
function servedCertificate({
  hostname,
  port,
}: URL): Promise<{ certificate: X509Certificate; distrust: string }> {
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve, reject) => {
    const name = isIP(host) ? {} : { servername: host }
    const options = { host, port: Number(port) || 443, ...name, rejectUnauthorized: false }
    const socket = connect(options, () => {
      const certificate = socket.getPeerX509Certificate()
      // At run time, this is an error or its code, although its type allows only an error.
      const distrust = socket.authorized ? '' : String(socket.authorizationError)
      socket.destroy()
      if (certificate) resolve({ certificate, distrust })
      else reject(new Error('no certificate was sent'))
    })
    socket.setTimeout(connectMs, () => socket.destroy(new Error(`no response within ${connectMs / 1000} s`)))
    socket.once('error', reject)
  })
}

/** Returns what is wrong with a certificate for clients of this URL, if anything. */
function problemOf(
  certificate: X509Certificate,
  what: string,
  publicUrl: string,
  advice: string,
): Finding | undefined {
  const leftDays = Math.floor((Date.parse(certificate.validTo) - Date.now()) / dayMs)
  if (leftDays < 0) return problem(step, `${what} expired on ${certificate.validTo}`, advice)
  const hostname = publicUrl === '' ? '' : new URL(publicUrl).hostname.replace(/^\[|\]$/g, '')
  const isCovered = isIP(hostname) ? certificate.checkIP(hostname) : certificate.checkHost(hostname)
  if (hostname !== '' && !isCovered)
    return problem(step, `${what} is not for ${hostname}`, 'use a certificate for the name in public_url')
  return leftDays < soonDays ? warning(step, `${what} expires on ${certificate.validTo}`, advice) : undefined
}
