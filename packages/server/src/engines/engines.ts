import { existsSync } from 'node:fs'
import type { Config, IncusConfig, LocationConfig } from '../config/index.ts'
import type { Database } from '../postgres/database.ts'
import type { Log } from '../services.ts'
import { type Engine, EngineError, type EngineImage, type Engines } from './engine.ts'
import { createIncusEngine } from './incus/index.ts'
import { createQemuEngine, ensureMiniGuest } from './qemu/index.ts'
import { SimulatedEngine } from './simulated/engine.ts'

export interface OpenEngines {
  byLocation: Engines
  /** What an engine brings along, by location. */
  images: Map<string, EngineImage[]>
  close(): Promise<void>
}

/** The engine of each configured location. */
export async function createEngines(config: Config, database: Database, log: Log): Promise<OpenEngines> {
  const byLocation = new Map<string, Engine>()
  const images = new Map<string, EngineImage[]>()
  const closings: (() => Promise<void>)[] = []
  for (const location of config.locations) {
    switch (location.engine) {
      case 'simulated':
        byLocation.set(location.name, simulatedEngine(location, database))
        break
      case 'qemu': {
        const engine = await createQemuEngine({
          dataDir: config.server.dataDir,
          location: location.name,
          ...location.qemu,
          gpus: location.qemu.gpus as never,
          log,
          ...(process.stderr.isTTY && { progress: (message: string) => console.error(`  ${message}`) }),
        })
        byLocation.set(location.name, engine)
        // Where there are no Debian packages to make it from, only imported images are offered.
        images.set(location.name, await miniImage(config.server.dataDir, log).catch(() => []))
        closings.push(() => engine.close())
        break
      }
      case 'incus': {
        if (config.isDemo) requireLocalIncus(location.incus)
        const engine = await createIncusEngine({ config: location.incus })
        byLocation.set(location.name, engine)
        closings.push(() => engine.close())
      }
    }
  }
  return {
    byLocation,
    images,
    async close() {
      for (const close of closings) await close()
    },
  }
}

/** A demo is on this machine; elsewhere a cluster that is away comes back by itself. */
function requireLocalIncus({ urls, socket }: IncusConfig): void {
  if (urls.length === 0 && !existsSync(socket))
    throw new EngineError(
      'unavailable',
      `there is no Incus at ${socket}: apt-get install incus (Debian 12: from bookworm-backports), then slipway-server incus init`,
    )
}

const simulatedEngine = (location: LocationConfig & { engine: 'simulated' }, database: Database) =>
  new SimulatedEngine({
    database,
    location: location.name,
    bootMs: location.simulated.bootMs,
    quarantineMs: location.simulated.quarantineMs,
  })

async function miniImage(dataDir: string, log: Log): Promise<EngineImage[]> {
  const source = await ensureMiniGuest(dataDir, (message) => log.info({}, message))
  return [
    {
      name: 'mini:latest',
      description: 'A small Linux guest with busybox and SSH, made from Debian packages',
      tags: ['mini', 'debian'],
      source,
    },
  ]
}
