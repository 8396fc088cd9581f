import type { Config } from './config/index.ts'
import type { SecretKeys } from './domain/secret-key.ts'
import type { Engines } from './engines/engine.ts'
import type { Database } from './store/database.ts'
import type { DueWork } from './store/due.ts'
import type { Signals } from './store/signals.ts'

/** What every part of a process works with. */
export interface Services {
  config: Config
  database: Database
  signals: Signals
  due: DueWork
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
