import type { Config } from './config/index.ts'
import type { SecretKeys } from './domain/secret-key.ts'
import type { EngineCalls, Engines } from './engines/engine.ts'
import type { Database } from './postgres/database.ts'
import type { Signals } from './postgres/signals.ts'
import type { WorkKind } from './store/fleet/due.ts'

export interface Services {
  config: Config
  database: Database
  signals: Signals
  due: DueTasks
  engines: Engines
  /** The calls of this process to its engines, by location. */
  engineCalls: Map<string, EngineCalls>
  log: Log
  version: string
  /** The keys that encrypt secrets at rest. */
  secretKey: SecretKeys
  /** The URL of the service, for links. */
  publicUrl: () => string
  /** Overrides the time limit of a step's engine work. */
  stepMs?: number
}

export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** A task is due when there is work of its kind, and no other process holds the lease of its turn. */
export interface DueTask {
  kind?: WorkKind
  /** The name of the turn's lease. */
  turn?: string
  /** An additional pause after the turn's lease expires, if no host and no GPU needs attention. */
  restMs?: number
  /** Minimum interval between calls, by this process's clock. */
  everyMs?: number
}

export interface DueTasks {
  /** Calls `notify` whenever the task is due. Returns the function that unsubscribes. */
  on(task: DueTask, notify: () => void): () => void
}
