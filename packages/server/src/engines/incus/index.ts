import { connect } from 'node:net'
import type { IncusConfig } from '../../config/index.ts'
import { IncusClient } from './client.ts'
import { openConnections } from './connections.ts'
import type { IncusContext } from './context.ts'
import { IncusEngine } from './engine.ts'

export interface IncusOptions {
  config: IncusConfig
  /** Replaces the check over this machine's own network. */
  answersSsh?: IncusContext['answersSsh']
}

/** Does not wait for Incus, because a location works as soon as its cluster answers. */
export async function createIncusEngine({ config, answersSsh }: IncusOptions): Promise<IncusEngine> {
  const client = new IncusClient(await openConnections(config), config.project)
  return new IncusEngine({ client, config, answersSsh: answersSsh ?? hasSshBanner })
}

/** An SSH server sends the first message. */
function hasSshBanner(address: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port })
    const end = (isAnswered: boolean) => {
      socket.destroy()
      resolve(isAnswered)
    }
    socket.once('data', (data) => end(data.toString('latin1').startsWith('SSH-')))
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
    signal.addEventListener('abort', () => end(false), { once: true })
  })
}
