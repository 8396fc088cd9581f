import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { IncusConfig } from '../../../config/index.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

const dayMs = 86_400_000
const soonDays = 30

/**
 * Checks the files that the service and the cluster use to authenticate each other. A connection through a
 * socket needs no such files.
 */
export async function certificateFinding(config: IncusConfig, nowMs: number): Promise<Finding> {
  const step = 'certificate'
  if (config.urls.length === 0) return ok(step, "not needed for this machine's socket")
  const { clientCertFile, clientKeyFile, serverCertFile } = config
  const renewal = 'slipway-server incus init --address HOST:8443 creates and registers a new certificate'
  for (const file of [clientCertFile, clientKeyFile, serverCertFile].filter(Boolean))
    if (!(await stat(file).catch(() => null)))
      return problem(step, `the file ${file} does not exist`, renewal)
  const { validTo } = new X509Certificate(await readFile(clientCertFile))
  const leftDays = Math.floor((Date.parse(validTo) - nowMs) / dayMs)
  if (leftDays < 0) return problem(step, `${clientCertFile} expired on ${validTo}`, `remove it; ${renewal}`)
  if (leftDays < soonDays)
    return warning(step, `${clientCertFile} expires on ${validTo}`, `remove it; ${renewal}`)
  if (((await stat(clientKeyFile)).mode & 0o077) !== 0)
    return problem(step, `other users can read ${clientKeyFile}`, `chmod 600 ${clientKeyFile}`)
  return serverCertFile === ''
    ? warning(
        step,
        'every server certificate that the system trusts is accepted',
        'set server_cert_file to the certificate of the cluster',
      )
    : ok(step, `${clientCertFile}, valid until ${validTo}`)
}
