import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { IncusConfig } from '../../../config/index.ts'
import { type Finding, missing, ok, warning } from './finding.ts'

const dayMs = 86_400_000
const soonDays = 30

/** The files by which the service and the cluster know each other; a socket needs none. */
export async function certificateFinding(config: IncusConfig, nowMs: number): Promise<Finding> {
  const step = 'certificate'
  if (config.urls.length === 0) return ok(step, 'none is needed on the socket of this machine')
  const { clientCertFile, clientKeyFile, serverCertFile } = config
  const again = 'slipway-server incus init --address HOST:8443 makes and registers one'
  for (const file of [clientCertFile, clientKeyFile, serverCertFile].filter(Boolean))
    if (!(await stat(file).catch(() => null))) return missing(step, `there is no file ${file}`, again)
  const { validTo } = new X509Certificate(await readFile(clientCertFile))
  const leftDays = Math.floor((Date.parse(validTo) - nowMs) / dayMs)
  if (leftDays < 0) return missing(step, `${clientCertFile} ended on ${validTo}`, `remove it; ${again}`)
  if (leftDays < soonDays)
    return warning(step, `${clientCertFile} ends in ${leftDays} days`, `remove it; ${again}`)
  if (((await stat(clientKeyFile)).mode & 0o077) !== 0)
    return missing(step, `${clientKeyFile} can be read by other users`, `chmod 600 ${clientKeyFile}`)
  return serverCertFile === ''
    ? warning(
        step,
        'any server that the system trusts is believed',
        'set server_cert_file to the certificate of the cluster',
      )
    : ok(step, `${clientCertFile}, until ${validTo}`)
}
