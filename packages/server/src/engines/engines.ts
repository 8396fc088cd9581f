import { existsSync } from 'node:fs'
import type { Config, IncusConfig, LocationConfig } from '../config/index.ts'
import type { Database } from '../postgres/database.ts'
import type { Log } from '../services.ts'
import { countedEngine, noCalls } from './counted-engine.ts'
import { type Engine, type EngineCalls, EngineError, type EngineImage } from './engine.ts'
import { createIncusEngine } from './incus/index.ts'
import { createQemuEngine, ensureMiniGuest, miniGuestBytes } from './qemu/index.ts'
import { SimulatedEngine } from './simulated/engine.ts'

export type OpenEngine = Engine & { close?(): Promise<void> }

export interface EngineParts {
  config: Config
  database: Database
  log: Log
  /** The counted calls of each location's engine, for the metrics. */
  calls: Map<string, EngineCalls>
  /** Wraps each engine so that clients of a `--dev` service can inject faults. */
  wrap?: ((engine: OpenEngine) => OpenEngine) | undefined
}

/**
 * Opens the engines of these locations, and returns them by location name. If one cannot be opened, all are
 * closed.
 */
export async function openEngines(
  locations: LocationConfig[],
  parts: EngineParts,
): Promise<Map<string, OpenEngine>> {
  const opened = new Map<string, OpenEngine>()
  try {
    for (const location of locations) {
      const calls = noCalls()
      const engine = countedEngine(await openEngine(location, parts), calls)
      parts.calls.set(location.name, calls)
      opened.set(location.name, parts.wrap?.(engine) ?? engine)
    }
  } catch (error) {
    await closeEngines(opened.values())
    throw error
  }
  return opened
}

export async function closeEngines(engines: Iterable<OpenEngine>): Promise<void> {
  for (const engine of engines) await engine.close?.()
}

/** Returns the images that a location's engine provides without an import. */
export async function imagesOfEngine(
  { engine }: LocationConfig,
  { config, log }: Pick<EngineParts, 'config' | 'log'>,
): Promise<EngineImage[]> {
  // If the mini guest cannot be built from Debian packages, only imported images are offered.
  return engine === 'qemu' ? miniImage(config.server.dataDir, log).catch(() => []) : []
}

async function openEngine(
  location: LocationConfig,
  { config, database, log }: EngineParts,
): Promise<OpenEngine> {
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

/**
 * Unless `urls` names a cluster, a demo needs Incus on this machine, so it fails at once if Incus is missing.
 * Outside a demo, Slipway keeps trying to reach Incus.
 */
function requireLocalIncus({ urls, socket }: IncusConfig): void {
  if (urls.length === 0 && !existsSync(socket))
    throw new EngineError(
      'unavailable',
      `no Incus found at ${socket}; install it with apt-get install incus (Debian 12: from bookworm-backports), then run slipway-server incus init`,
    )
}

async function miniImage(dataDir: string, log: Log): Promise<EngineImage[]> {
  const guest = await ensureMiniGuest(dataDir, (message) => log.info({}, message))
  const source = { ...guest, sizeBytes: await miniGuestBytes(dataDir, guest) }
  const description = 'A small Linux guest with busybox and SSH, made from Debian packages'
  return [{ name: 'mini:latest', description, tags: ['mini', 'debian', 'slipway-guest'], source }]
}
