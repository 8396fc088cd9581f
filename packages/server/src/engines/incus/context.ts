import type { IncusConfig } from '../../config/index.ts'
import { IncusClient } from './client.ts'
import { openConnections } from './connections.ts'

export interface IncusContext {
  client: IncusClient
  config: IncusConfig
  /** Returns whether an SSH server responds at this address. */
  answersSsh: (address: string, port: number, signal: AbortSignal) => Promise<boolean>
}

/** Connects to Incus for the duration of an operator's command. */
export async function withIncus<T>(
  config: IncusConfig,
  project: string,
  work: (ctx: IncusContext) => Promise<T>,
): Promise<T> {
  const client = new IncusClient(await openConnections(config), project)
  try {
    return await work({ client, config, answersSsh: async () => false })
  } finally {
    await client.close()
  }
}
