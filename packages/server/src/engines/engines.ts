import type { Config, LocationConfig } from '../config/index.ts'
import type { Log } from '../services.ts'
import type { Database } from '../store/database.ts'
import type { Engine, EngineImage, Engines } from './engine.ts'
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
      case 'incus':
        log.error(
          { location: location.name },
          'the incus engine is not part of this version: the location stays empty',
        )
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
