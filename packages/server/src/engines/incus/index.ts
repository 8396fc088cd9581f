import { connect } from 'node:net'
import type { IncusConfig } from '../../config/index.ts'
import { IncusClient } from './client.ts'
import { openConnections } from './connections.ts'
import type { IncusContext } from './context.ts'
import { IncusEngine } from './engine.ts'

export interface IncusOptions {
  config: IncusConfig
  /** Replaces the default check, which connects from this machine. */
  answersSsh?: IncusContext['answersSsh']
}

/** Does not wait for Incus: the location works as soon as its cluster responds. */
export async function createIncusEngine({ config, answersSsh }: IncusOptions): Promise<IncusEngine> {
  const client = new IncusClient(await openConnections(config), config.project)
  return new IncusEngine({ client, config, answersSsh: answersSsh ?? hasSshBanner })
}

/** An SSH server sends its version string without waiting for the client. */
function hasSshBanner(address: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port })
    const end = (hasBanner: boolean) => {
      socket.destroy()
      resolve(hasBanner)
    }
    socket.once('data', (data) => end(data.toString('latin1').startsWith('SSH-')))
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
    signal.addEventListener('abort', () => end(false), { once: true })
  })
}
