import type { IncusConfig } from '../../config/index.ts'
import type { IncusClient } from './client.ts'

export interface IncusContext {
  client: IncusClient
  config: IncusConfig
  /** Returns whether something at this address answers as an SSH server does. */
  answersSsh: (address: string, port: number, signal: AbortSignal) => Promise<boolean>
}
