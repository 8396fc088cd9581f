import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { IncusConfig } from '../../../config/index.ts'
import { run } from '../../qemu/command.ts'
import type { IncusContext } from '../context.ts'
import { memberNames } from '../members.ts'
import { ensureProject } from '../project.ts'
import { filterBetweenGuests, markFiltering } from './host-setup.ts'
import { local, type ServerInfo, withOperator } from './operator.ts'

export interface InitOptions {
  /** Of the daemon of this machine, where the configuration names none. */
  socket: string
  storageDriver: string
  storageSource: string
  /** Where other members and the service reach this one; '' is a server alone, reached by its socket. */
  address: string
  say: (line: string) => void
}

const changeMs = 120_000

/** Makes of the daemon of this machine a place for VMs. What is there already is left as it is. */
export function init(config: IncusConfig, options: InitOptions): Promise<void> {
  return withOperator(local(config, options.socket), async (ctx) => {
    const signal = AbortSignal.timeout(changeMs)
    const { say, address } = options
    const { storagePool, project } = config
    const told = (what: string, isNew: boolean) => say(`${what}: ${isNew ? 'made' : 'is there'}`)
    // Before anything of this machine is changed.
    await ctx.client.get('/1.0', { signal })
    await filterBetweenGuests()
    say('bridge filtering: on, and at every boot')
    told(`storage pool ${storagePool}`, await ensurePool(ctx, options, signal))
    if (address) told(`cluster at ${address}`, await ensureCluster(ctx, address, signal))
    told(`project ${project}`, await ensureProject(ctx, signal))
    const info = await ctx.client.get<ServerInfo>('/1.0', { signal })
    await markFiltering(ctx, info, signal)
    if (address) {
      told(`certificate ${config.clientCertFile}`, await ensureCertificate(config))
      told('its registration', await ensureTrust(ctx, config, signal))
      await writeFile(config.serverCertFile, info.environment.certificate)
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
  // In a cluster each member is told of its part before the whole is made.
  for (const target of members ?? [])
    await ctx.client.change(
      'POST',
      '/1.0/storage-pools',
      { name, driver, config },
      { signal, query: { target } },
    )
  const whole = { name, driver, config: members ? {} : config }
  await ctx.client.change('POST', '/1.0/storage-pools', whole, { signal, timeoutMs: changeMs })
  return true
}

async function ensureCluster(ctx: IncusContext, address: string, signal: AbortSignal): Promise<boolean> {
  const { environment } = await ctx.client.get<ServerInfo>('/1.0', { signal })
  if (environment.server_clustered) return false
  const config = { 'core.https_address': address }
  await ctx.client.change('PATCH', '/1.0', { config }, { signal })
  const cluster = { server_name: environment.server_name, enabled: true }
  await ctx.client.change('PUT', '/1.0/cluster', cluster, { signal, timeoutMs: changeMs })
  return true
}

/** Incus's own client makes it, in a folder of its own. */
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

/** Not restricted to a project: members, bridges and pools belong to none. */
async function ensureTrust(ctx: IncusContext, { clientCertFile }: IncusConfig, signal: AbortSignal) {
  const certificate = new X509Certificate(await readFile(clientCertFile))
  const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase()
  if (await ctx.client.find(`/1.0/certificates/${fingerprint}`, { signal })) return false
  const body = { type: 'client', name: 'slipway', certificate: certificate.raw.toString('base64') }
  await ctx.client.change('POST', '/1.0/certificates', body, { signal })
  return true
}
