import type { Engine } from '../engines/engine.ts'
import type { DevMode } from '../http/app.ts'
import type { Database } from '../postgres/database.ts'
import type { Definition } from '../runner/operation.ts'
import { expireAllLeases } from '../store/dev/clock.ts'
import type { Workers } from './clock.ts'
import { Faults } from './faults.ts'
import { faultyEngine } from './faulty-engine.ts'
import { mountLevers, watchRequests } from './mount.ts'
import { RequestLog } from './request-log.ts'

export interface Dev {
  /** The operations, with steps that fail if an active fault applies to them. */
  definitions: Definition[]
  engine<E extends Engine>(engine: E): E
  mode(workers: Workers): DevMode
}

/** Prepares a service in which clients control the clock, faults and capacity. */
export async function openDev(database: Database, definitions: Definition[]): Promise<Dev> {
  const faults = new Faults(database, definitions)
  const log = new RequestLog()
  await faults.load()
  await database.transaction(expireAllLeases)
  return {
    definitions: faults.wrapSteps(definitions),
    engine: faultyEngine,
    mode: (workers) => ({
      watch: (app) => watchRequests(app, faults, log),
      mount: (app, { access, streams }) => mountLevers(app, { workers, faults, access, streams }, log),
    }),
  }
}
