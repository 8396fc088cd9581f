import type { Config } from './config/index.ts'
import type { SecretKeys } from './domain/secret-key.ts'
import type { Engines } from './engines/engine.ts'
import type { Database } from './postgres/database.ts'
import type { Signals } from './postgres/signals.ts'
import type { WorkKind } from './store/fleet/due.ts'

/** What every part of a process works with. */
export interface Services {
  config: Config
  database: Database
  signals: Signals
  due: DueTasks
  engines: Engines
  log: Log
  version: string
  /** What encrypts secrets at rest. */
  secretKey: SecretKeys
  /** Where clients reach us, for links. */
  publicUrl: () => string
  /** How long one step's engine work may take, if not as long as usual. */
  stepMs?: number
}

export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** When a task is due: when there is work of this kind, and when the turn is free that processes share it by. */
export interface DueTask {
  kind?: WorkKind
  /** The name of the turn's lease. */
  turn?: string
  /** How long the turn rests after its lease ran out, as long as no host and no GPU needs attention. */
  restMs?: number
  /** It is not told again sooner, by this process's own clock. */
  everyMs?: number
}

/** Says when tasks are due. */
export interface DueTasks {
  /** Returns what ends it. */
  on(task: DueTask, tell: () => void): () => void
}
