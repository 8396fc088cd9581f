import type { Config, LocationConfig } from '../config.ts'
import type { Engine, Engines } from '../operations/engine.ts'
import type { Log } from '../operations/operation.ts'
import type { Database } from '../store/database.ts'
import { SimulatedEngine } from './simulated/engine.ts'

/** The engine of each configured location. */
export async function createEngines(
  config: Config,
  database: Database,
  _log: Log,
): Promise<{ byLocation: Engines; close(): Promise<void> }> {
  const byLocation = new Map<string, Engine>()
  for (const location of config.locations) byLocation.set(location.name, createEngine(location, database))
  return { byLocation, close: async () => {} }
}

function createEngine(location: LocationConfig, database: Database): Engine {
  switch (location.engine) {
    case 'simulated':
      return new SimulatedEngine({
        database,
        location: location.name,
        bootMs: location.simulated.bootMs,
        quarantineMs: location.simulated.quarantineMs,
      })
    default:
      throw new Error(`the engine ${location.engine} is not part of this build`)
  }
}
