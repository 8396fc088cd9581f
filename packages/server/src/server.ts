import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { BillingTasks } from './billing/tasks.ts'
import { type Config, ConfigError, isLoopback } from './config/index.ts'
import { closeEngines, imagesOfEngine, openEngines } from './engines/engines.ts'
import { buildApp } from './http/app.ts'
import { buildWorkerApp } from './http/worker-app.ts'
import { MailDelivery } from './mail/delivery.ts'
import { definitions } from './operations/index.ts'
import { packageVersion } from './package-root.ts'
import { Database } from './postgres/database.ts'
import { migrate } from './postgres/migrate.ts'
import { DatabaseServers } from './postgres/servers.ts'
import { Signals } from './postgres/signals.ts'
import { Reconciler } from './reconcile/reconciler.ts'
import { type LocationChanges, reloadLocations } from './reload-locations.ts'
import { DueWorkWatch } from './runner/due-work.ts'
import { Runner } from './runner/runner.ts'
import { offerSlots } from './runner/slots.ts'
import type { Services } from './services.ts'
import { applyConfig, offerImages } from './setup/apply-config.ts'
import { openSecretKey } from './setup/secrets.ts'
import { listServerUrls } from './store/fleet/servers.ts'
import { WebhookDelivery } from './webhooks/delivery.ts'

/** How long requests in progress may take after shutdown begins. */
const drainMs = 2_000

export interface Server {
  url: string
  services: Services
  reconciler: Reconciler
  billing: BillingTasks
  webhooks: WebhookDelivery
  mail: MailDelivery
  /** Applies the locations of a reloaded configuration. */
  reload(given: Config): Promise<LocationChanges>
  close(): Promise<void>
}

/** Starts one process of the service: API, worker, or both. */
export async function startServer(
  given: Config,
  databaseUrls: string | readonly string[],
  log: FastifyBaseLogger,
): Promise<Server> {
  if (given.isDev) requireLocal(given)
  const servers = new DatabaseServers(databaseUrls)
  await migrate(servers)
  const signals = new Signals(servers)
  await signals.open()
  const database = new Database({
    url: servers,
    poolSize: given.database.poolSize,
    signals,
    onError: (error) => log.warn({ err: error }, 'database connection lost'),
  })
  const closeStore = async () => {
    await signals.close()
    await database.close()
  }
  const { config, engines, engineCalls, secretKey, dev } = await prepare(given, database, log).catch(
    async (error) => {
      await closeStore()
      throw error
    },
  )
  const { role, workerPort } = config.server
  let url = ''
  const services: Services = {
    config,
    database,
    signals,
    due: new DueWorkWatch(database, engines, (err) => log.warn({ err }, 'due work not read; will retry')),
    engines,
    engineCalls,
    log,
    version: packageVersion(),
    secretKey,
    publicUrl: () => config.server.publicUrl || (role === 'worker' ? '' : url),
  }

  const reconciler = new Reconciler(services)
  const runner = new Runner(services, dev?.definitions ?? definitions)
  const billing = new BillingTasks(services)
  const webhooks = new WebhookDelivery(services)
  const mail = new MailDelivery(services)
  const isWorker = role !== 'api'
  if (isWorker) {
    // Read the fleet before the first request needs it.
    await reconciler.start()
    runner.start()
    offerSlots(database, runner)
    billing.start()
    webhooks.start()
    mail.start()
  }

  const workers = { services, reconciler, billing, webhooks, mail }
  const app =
    role !== 'worker'
      ? buildApp(services, log, dev?.mode(workers)).fastify
      : workerPort
        ? buildWorkerApp(services, log)
        : null
  const close = async () => {
    await closeApp(app)
    if (isWorker)
      await Promise.all([runner.stop(), reconciler.stop(), billing.stop(), webhooks.stop(), mail.stop()])
    await closeEngines(engines.values())
    await closeStore()
  }
  if (app) {
    const address = listenAddress(config)
    await app.listen(address).catch(async (error) => {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      const servers = isTaken ? await listServerUrls(database).catch(() => []) : []
      await close()
      throw isTaken ? new AddressTaken(config, servers) : error
    })
    const { port } = app.server.address() as AddressInfo
    const host = address.host.includes(':') ? `[${address.host}]` : address.host
    const isTls = role !== 'worker' && config.server.tlsCertFile !== ''
    url = `${isTls ? 'https' : 'http'}://${host}:${port}`
    if (!isTls) warnIfExposed(config, address.host, log)
    if (role !== 'worker') await signals.announce(services.publicUrl())
  }

  return {
    url,
    ...workers,
    reload: (newConfig) =>
      reloadLocations(
        { services, engines, reconciler: isWorker ? reconciler : null, wrap: dev?.engine },
        newConfig,
      ),
    close,
  }
}

/**
 * Clients of a service in dev mode can delete everything, so it must run on one machine with its own data.
 */
function requireLocal({ server, database }: Config): void {
  if (!isLoopback(server.host)) throw new ConfigError(`--dev listens on loopback only, not on ${server.host}`)
  if (database.urls.length > 0)
    throw new ConfigError(
      `--dev uses the embedded database only: unset ${database.source}, or start without --dev`,
    )
  if (server.role !== 'all')
    throw new ConfigError('--dev requires a process that is both API and worker: use --role all')
}

/** Another process uses the listen address. `servers` are the URLs of servers on the same database. */
export class AddressTaken extends Error {
  constructor(config: Config, servers: string[]) {
    const { host, port } = listenAddress(config)
    const setting = config.server.role === 'worker' ? 'worker_port' : '--port'
    // Servers that share an embedded database run on this machine, so one of them probably uses the address.
    const isOurs = config.database.urls.length === 0 && servers.length > 0
    const cause = isOurs
      ? `Slipway is already running at ${servers.join(' and ')} (data directory ${config.server.dataDir}). To start another server, `
      : ''
    super(`${host}:${port} is already in use: ${cause}choose another port with ${setting}, or ${setting} 0`)
  }
}

/** Loads the secret key, writes the configuration to the database, and starts the engines of its locations. */
async function prepare(given: Config, database: Database, log: FastifyBaseLogger) {
  const secretKey = await openSecretKey(database, given.server)
  const config = { ...given, locations: await applyConfig(database, given) }
  // Dev mode is loaded only if it is enabled, so that none of its code can be reached in production.
  const dev = config.isDev ? await (await import('./dev/dev.ts')).openDev(database, definitions) : undefined
  const engineCalls: Services['engineCalls'] = new Map()
  const parts = { config, database, log, calls: engineCalls, wrap: dev?.engine }
  const engines = await openEngines(config.locations, parts)
  for (const location of config.locations)
    await offerImages(database, location.name, await imagesOfEngine(location, { config, log }))
  return { config, engines, engineCalls, secretKey, dev }
}

/** Without TLS, bearer tokens and passwords can be read on the network, unless a proxy in front uses TLS. */
function warnIfExposed({ server }: Config, host: string, log: FastifyBaseLogger): void {
  if (isLoopback(host) || server.trustedProxies.length > 0) return
  log.warn(
    { host },
    'listening on a network address without TLS: credentials can be read in transit. Set [server] tls_cert_file and tls_key_file, or put a proxy in front and list it in trusted_proxies (docs/operate/internet.md)',
  )
}

/** A worker serves health and metrics on its own machine only. */
const listenAddress = ({ server }: Config): { host: string; port: number } =>
  server.role === 'worker'
    ? { host: '127.0.0.1', port: server.workerPort }
    : { host: server.host, port: server.port }

/** Requests in progress may finish; streams and long waits are disconnected. */
async function closeApp(app: FastifyInstance | null): Promise<void> {
  const cut = setTimeout(() => app?.server.closeAllConnections(), drainMs)
  await app?.close()
  clearTimeout(cut)
}
