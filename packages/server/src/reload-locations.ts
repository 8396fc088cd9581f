import { isDeepStrictEqual } from 'node:util'
import { type Config, ConfigError, type LocationConfig } from './config/index.ts'
import { closeEngines, imagesOfEngine, type OpenEngine, openEngines } from './engines/engines.ts'
import type { Reconciler } from './reconcile/reconciler.ts'
import type { Services } from './services.ts'
import { applyLocations, effectiveLocations, offerImages } from './setup/apply-config.ts'
import { listLocations } from './store/fleet/locations.ts'

export interface LocationChanges {
  /** The names of locations. */
  added: string[]
  changed: string[]
  removed: string[]
  /** The names of other sections of the configuration that differ. Their changes apply only after a restart. */
  needRestart: string[]
}

interface ReloadParts {
  services: Services
  /** The same map as `services.engines`, but writable. */
  engines: Map<string, OpenEngine>
  /** Null in a process that is not a worker. */
  reconciler: Reconciler | null
  wrap: ((engine: OpenEngine) => OpenEngine) | undefined
}

/**
 * Applies the locations of a reloaded configuration, with the same result as a restart. If it throws, nothing
 * has changed. Operations in a location that is removed or changed continue in another process or with the
 * new engine.
 */
export async function reloadLocations(parts: ReloadParts, given: Config): Promise<LocationChanges> {
  const { services, engines, reconciler, wrap } = parts
  const { config, database, log } = services
  const before = new Map(config.locations.map((location) => [location.name, location]))
  const locations = effectiveLocations(given, await listLocations(database))
  const names = locations.map(({ name }) => name)
  const added = locations.filter(({ name }) => !before.has(name))
  const changed = locations.filter((location) => {
    const earlier = before.get(location.name)
    return earlier && !isDeepStrictEqual(earlier, location)
  })
  for (const location of changed) refuseQemuChange(before.get(location.name)!, location)
  const removed = [...before.keys()].filter((name) => !names.includes(name))

  const opened = await openEngines([...added, ...changed], {
    config,
    database,
    log,
    calls: services.engineCalls,
    wrap,
  })
  try {
    await applyLocations(database, { quotas: config.quotas, locations })
    for (const location of added)
      await offerImages(database, location.name, await imagesOfEngine(location, services))
  } catch (error) {
    await closeEngines(opened.values())
    throw error
  }

  const closing = [...removed, ...namesOf(changed)].map((name) => [name, engines.get(name)!] as const)
  for (const [name] of closing) {
    reconciler?.leave(name)
    engines.delete(name)
    if (removed.includes(name)) services.engineCalls.delete(name)
  }
  config.locations = locations
  for (const [name, engine] of opened) {
    engines.set(name, engine)
    reconciler?.serve(name)
  }
  await closeEngines(closing.map(([, engine]) => engine))
  return {
    added: namesOf(added),
    changed: namesOf(changed),
    removed,
    needRestart: otherChanges(config, given),
  }
}

const namesOf = (locations: LocationConfig[]): string[] => locations.map(({ name }) => name)

/** Two QEMU engines cannot serve one location at the same time: both would forward the same addresses. */
function refuseQemuChange(earlier: LocationConfig, location: LocationConfig): void {
  if (earlier.engine === 'qemu' || location.engine === 'qemu')
    throw new ConfigError(
      `location ${location.name}: changes to a location with the qemu engine require a restart`,
    )
}

/** Returns the names of the sections, other than the locations, that differ. */
function otherChanges(config: Config, given: Config): string[] {
  const isCompared = (key: keyof Config) => key !== 'locations' && key !== 'command'
  return (Object.keys(config) as (keyof Config)[]).filter(
    (key) => isCompared(key) && !isDeepStrictEqual(config[key], given[key]),
  )
}
