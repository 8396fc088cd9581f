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
  /** Images that an engine provides by itself, by location. */
  images: Map<string, EngineImage[]>
  close(): Promise<void>
}

export async function createEngines(config: Config, database: Database, log: Log): Promise<OpenEngines> {
  const byLocation = new Map<string, Engine & { close?(): Promise<void> }>()
  const images = new Map<string, EngineImage[]>()
  for (const location of config.locations) {
    byLocation.set(location.name, await createEngine(location, config, database, log))
    // Without Debian packages to build the mini guest from, only imported images are offered.
    if (location.engine === 'qemu')
      images.set(location.name, await miniImage(config.server.dataDir, log).catch(() => []))
  }
  return {
    byLocation,
    images,
    async close() {
      for (const engine of byLocation.values()) await engine.close?.()
    },
  }
}

async function createEngine(location: LocationConfig, config: Config, database: Database, log: Log) {
  switch (location.engine) {
    case 'simulated': {
      const { bootMs, quarantineMs } = location.simulated
      return new SimulatedEngine({ database, location: location.name, bootMs, quarantineMs })
    }
    case 'qemu':
      return createQemuEngine({
        dataDir: config.server.dataDir,
        location: location.name,
        ...location.qemu,
        gpus: location.qemu.gpus as never,
        log,
        ...(process.stderr.isTTY && { progress: (message: string) => console.error(`  ${message}`) }),
      })
    case 'incus':
      if (config.isDemo) requireLocalIncus(location.incus)
      return createIncusEngine({ config: location.incus })
  }
}

/** A demo needs Incus on this machine. Outside a demo, an unreachable cluster is retried until it answers. */
function requireLocalIncus({ urls, socket }: IncusConfig): void {
  if (urls.length === 0 && !existsSync(socket))
    throw new EngineError(
      'unavailable',
      `no Incus found at ${socket}; install it with apt-get install incus (Debian 12: from bookworm-backports), then run slipway-server incus init`,
    )
}

async function miniImage(dataDir: string, log: Log): Promise<EngineImage[]> {
  const source = await ensureMiniGuest(dataDir, (message) => log.info({}, message))
  const description = 'A small Linux guest with busybox and SSH, made from Debian packages'
  return [{ name: 'mini:latest', description, tags: ['mini', 'debian'], source }]
}
