import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { IncusConfig } from '../../../config/index.ts'
import { run } from '../../qemu/command.ts'
import { type IncusContext, withIncus } from '../context.ts'
import { memberNames, serverInfo } from '../fleet/members.ts'
import { ensureProject } from '../project.ts'
import { canLimitNetwork, limitsAdvice } from '../traffic-control.ts'
import { filterBetweenGuests, markKernel } from './host-setup.ts'

export interface InitOptions {
  /** The daemon's socket, if the configuration names none. */
  socket: string
  storageDriver: string
  storageSource: string
  /**
   * The address at which other members and the service reach this one; '' for a single server that is reached
   * through its socket.
   */
  address: string
  say: (line: string) => void
}

const changeMs = 120_000

/** Prepares the daemon of this machine for VMs. Keeps what already exists. */
export function init(config: IncusConfig, options: InitOptions): Promise<void> {
  const { say, address } = options
  const { storagePool, project, clientCertFile, serverCertFile } = config
  // This command uses the local socket, even if the service will reach the daemon in another way.
  const certificates = { clientCertFile: '', clientKeyFile: '', serverCertFile: '' }
  const local = { ...config, ...certificates, urls: [], socket: config.socket || options.socket }
  return withIncus(local, 'default', async (ctx) => {
    const signal = AbortSignal.timeout(changeMs)
    const report = (what: string, isNew: boolean) => say(`${what}: ${isNew ? 'created' : 'exists'}`)
    // Checks the connection first, so that nothing on this machine is changed if it fails.
    await serverInfo(ctx, signal)
    await filterBetweenGuests()
    say('bridge filtering: enabled, now and after every reboot')
    report(`storage pool ${storagePool}`, await ensurePool(ctx, options, signal))
    if (address) report(`cluster at ${address}`, await ensureCluster(ctx, address, signal))
    report(`project ${project}`, await ensureProject(ctx, signal))
    const info = await serverInfo(ctx, signal)
    const limitsNetwork = await canLimitNetwork()
    say(`network limits: ${limitsNetwork ? 'possible' : `not possible: ${limitsAdvice}`}`)
    await markKernel(ctx, info, limitsNetwork, signal)
    if (address) {
      report(`certificate ${clientCertFile}`, await ensureCertificate(config))
      report('certificate registration', await ensureTrust(ctx, config, signal))
      await writeFile(serverCertFile, info.environment.certificate)
    }
  })
}

async function ensurePool(
  ctx: IncusContext,
  { storageDriver: driver, storageSource: source }: InitOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const name = ctx.config.storagePool
  if (await ctx.client.find(`/1.0/storage-pools/${name}`, { signal })) return false
  const config = source ? { source } : {}
  const members = await memberNames(ctx, signal)
  // In a cluster, Incus requires that the pool is defined on each member before it is created.
  const path = '/1.0/storage-pools'
  for (const target of members ?? [])
    await ctx.client.change('POST', path, { name, driver, config }, { signal, query: { target } })
  const whole = { name, driver, config: members ? {} : config }
  await ctx.client.change('POST', path, whole, { signal, timeoutMs: changeMs })
  return true
}

async function ensureCluster(ctx: IncusContext, address: string, signal: AbortSignal): Promise<boolean> {
  const { environment } = await serverInfo(ctx, signal)
  if (environment.server_clustered) return false
  const config = { 'core.https_address': address }
  await ctx.client.change('PATCH', '/1.0', { config }, { signal })
  const cluster = { server_name: environment.server_name, enabled: true }
  await ctx.client.change('PUT', '/1.0/cluster', cluster, { signal, timeoutMs: changeMs })
  return true
}

/** Lets Incus's own client create the certificate, in a temporary folder. */
async function ensureCertificate({ clientCertFile, clientKeyFile }: IncusConfig): Promise<boolean> {
  if (existsSync(clientCertFile) && existsSync(clientKeyFile)) return false
  const folder = await mkdtemp(join(tmpdir(), 'slipway-certificate-'))
  try {
    await run('env', [`INCUS_CONF=${folder}`, 'incus', 'remote', 'generate-certificate'])
    await mkdir(dirname(clientKeyFile), { recursive: true })
    await copyFile(join(folder, 'client.key'), clientKeyFile)
    await chmod(clientKeyFile, 0o600)
    await copyFile(join(folder, 'client.crt'), clientCertFile)
    return true
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The certificate is not restricted to a project, because members, bridges and pools belong to no project. */
async function ensureTrust(ctx: IncusContext, { clientCertFile }: IncusConfig, signal: AbortSignal) {
  const certificate = new X509Certificate(await readFile(clientCertFile))
  const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase()
  if (await ctx.client.find(`/1.0/certificates/${fingerprint}`, { signal })) return false
  const body = { type: 'client', name: 'slipway', certificate: certificate.raw.toString('base64') }
  await ctx.client.change('POST', '/1.0/certificates', body, { signal })
  return true
}
