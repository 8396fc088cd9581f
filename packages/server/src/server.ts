import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { BillingTasks } from './billing/tasks.ts'
import type { Config } from './config/index.ts'
import { createEngines } from './engines/engines.ts'
import { type App, buildApp } from './http/app.ts'
import { definitions } from './operations/index.ts'
import { packageVersion } from './package-root.ts'
import { Reconciler } from './reconcile/reconciler.ts'
import { Runner } from './runner/runner.ts'
import type { Services } from './services.ts'
import { applyConfig, offerImages } from './setup/apply-config.ts'
import { Database } from './store/database.ts'
import { migrate } from './store/migrate.ts'
import { Signals } from './store/signals.ts'
import { WebhookDelivery } from './webhooks/delivery.ts'

/** How long requests under way may take once we stop. */
const drainMs = 2_000

export interface Server {
  url: string
  services: Services
  reconciler: Reconciler
  billing: BillingTasks
  webhooks: WebhookDelivery
  close(): Promise<void>
}

/** One process of the service on a database: API, worker, or both. */
export async function startServer(
  given: Config,
  databaseUrl: string,
  log: FastifyBaseLogger,
): Promise<Server> {
  await migrate(databaseUrl)
  const signals = new Signals(databaseUrl)
  await signals.open()
  const database = new Database({
    url: databaseUrl,
    poolSize: given.database.poolSize,
    signals,
    onError: (error) => log.warn({ err: error }, 'database connection lost'),
  })
  const config = { ...given, locations: await applyConfig(database, given) }
  const engines = await createEngines(config, database, log)
  for (const [location, images] of engines.images) await offerImages(database, location, images)
  let url = ''
  const services: Services = {
    config,
    database,
    signals,
    engines: engines.byLocation,
    log,
    version: packageVersion(),
    publicUrl: () => config.server.publicUrl || url,
  }

  const reconciler = new Reconciler(services)
  const runner = new Runner(services, definitions)
  const billing = new BillingTasks(services)
  const webhooks = new WebhookDelivery(services)
  const isWorker = config.server.role !== 'api'
  if (isWorker) {
    // The fleet is known before the first request asks for it.
    await reconciler.start()
    runner.start()
    billing.start()
    webhooks.start()
  }

  const app = config.server.role === 'worker' ? null : buildApp(services, log)
  const close = async () => {
    await closeApp(app)
    if (isWorker) await Promise.all([runner.stop(), reconciler.stop(), billing.stop(), webhooks.stop()])
    await engines.close()
    await signals.close()
    await database.close()
  }
  if (app) {
    await app.fastify.listen({ host: config.server.host, port: config.server.port }).catch(async (error) => {
      await close()
      throw error
    })
    const { port } = app.fastify.server.address() as AddressInfo
    const host = config.server.host.includes(':') ? `[${config.server.host}]` : config.server.host
    url = `http://${host}:${port}`
  }

  return {
    url,
    services,
    reconciler,
    billing,
    webhooks,
    close,
  }
}

/** Requests under way are answered; streams and long waits are cut. */
async function closeApp(app: App | null): Promise<void> {
  const cut = setTimeout(() => app?.fastify.server.closeAllConnections(), drainMs)
  await app?.fastify.close()
  clearTimeout(cut)
}
