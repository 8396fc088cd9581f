import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from './config.ts'
import { createEngines } from './engines/engines.ts'
import { type App, buildApp } from './http/app.ts'
import { applyConfig, offerImages } from './operations/apply-config.ts'
import type { Engines } from './operations/engine.ts'
import type { Workshop } from './operations/operation.ts'
import { Reconciler } from './operations/reconcile.ts'
import { definitions } from './operations/registry.ts'
import { Runner } from './operations/runner.ts'
import { WebhookDelivery } from './operations/webhook-delivery.ts'
import { packageVersion } from './package-root.ts'
import { Database } from './store/database.ts'
import { migrate } from './store/migrate.ts'
import { Signals } from './store/signals.ts'

/** How long requests under way may take once we stop. */
const drainMs = 2_000

export interface Server {
  url: string
  database: Database
  engines: Engines
  reconciler: Reconciler
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
  const database = new Database({
    url: databaseUrl,
    poolSize: given.database.poolSize,
    onError: (error) => log.warn({ err: error }, 'database connection lost'),
  })
  const signals = new Signals(databaseUrl)
  await signals.open()
  const config = { ...given, locations: await applyConfig(database, given) }
  const engines = await createEngines(config, database, log)
  for (const [location, images] of engines.images) await offerImages(database, location, images)
  const workshop: Workshop = { config, database, signals, engines: engines.byLocation, log }

  const reconciler = new Reconciler(workshop)
  const runner = new Runner(workshop, definitions)
  const webhooks = new WebhookDelivery(workshop)
  const isWorker = config.server.role !== 'api'
  if (isWorker) {
    // The fleet is known before the first request asks for it.
    await reconciler.reports()
    reconciler.start()
    runner.start()
    webhooks.start()
  }

  let url = ''
  const services = {
    config,
    database,
    signals,
    engines: engines.byLocation,
    version: packageVersion(),
    publicUrl: () => config.server.publicUrl || url,
  }
  const app = config.server.role === 'worker' ? null : buildApp(services, log)
  const close = async () => {
    await closeApp(app)
    if (isWorker) await Promise.all([runner.stop(), reconciler.stop(), webhooks.stop()])
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
    database,
    engines: engines.byLocation,
    reconciler,
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
