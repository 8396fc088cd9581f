import { randomInt } from 'node:crypto'
import type { Socket } from 'node:net'
import { connectUnix, onLines } from '../unix-socket.ts'

/** Some guest agents poll their port only once a second, so allow several polls. */
const syncMs = 3_000
const freezeMs = 8_000
const thawMs = 5_000
/** Expected responses are short. If a guest sends more than this, the connection is closed. */
const maxReceivedBytes = 64 * 1024

/** The guest agent did not respond. */
class AgentError extends Error {}

/**
 * A session with the QEMU guest agent inside a guest. The tenant controls everything that the agent sends, so
 * only a response's id and whether it is an error are used.
 */
class AgentSession {
  readonly #socket: Socket
  readonly #listeners = new Set<(line: string | null) => void>()

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('error', () => {})
    let receivedBytes = 0
    socket.on('data', (chunk) => {
      receivedBytes += chunk.length
      if (receivedBytes > maxReceivedBytes) socket.destroy()
    })
    const deliver = (line: string | null) => {
      for (const listener of this.#listeners) listener(line)
    }
    onLines(socket, deliver)
    socket.on('close', () => deliver(null))
  }

  /** Unread responses to earlier requests may arrive first, so a random id identifies our response. */
  async synchronize(): Promise<void> {
    const id = randomInt(1, 2 ** 31)
    await this.#request({ execute: 'guest-sync', arguments: { id } }, syncMs, (reply) => reply.return === id)
  }

  /** Returns whether the agent executed the command. Throws if the agent did not respond. */
  async execute(command: string, limitMs: number): Promise<boolean> {
    return 'return' in (await this.#request({ execute: command }, limitMs, () => true))
  }

  #request(
    request: object,
    limitMs: number,
    isOurs: (response: Record<string, unknown>) => boolean,
  ): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer)
        this.#listeners.delete(onLine)
        settle()
      }
      const timer = setTimeout(() => end(() => reject(new AgentError('no response'))), limitMs)
      const onLine = (line: string | null) => {
        if (line === null) return end(() => reject(new AgentError('the guest closed the connection')))
        const response = parse(line)
        if (response && isOurs(response)) end(() => resolve(response))
      }
      this.#listeners.add(onLine)
      this.#socket.write(`${JSON.stringify(request)}\n`)
    })
  }
}

function parse(line: string): Record<string, unknown> | null {
  try {
    const response: unknown = JSON.parse(line)
    return typeof response === 'object' && response !== null ? (response as Record<string, unknown>) : null
  } catch {
    return null
  }
}

async function withAgent<T>(socketPath: string, work: (agent: AgentSession) => Promise<T>): Promise<T> {
  const socket = await connectUnix(socketPath, syncMs)
  try {
    const agent = new AgentSession(socket)
    await agent.synchronize()
    return await work(agent)
  } finally {
    socket.destroy()
  }
}

/** `unknown`: the agent did not respond in time. It may still freeze the guest. */
export type FreezeResult = 'frozen' | 'not_frozen' | 'unknown'

/** Freezes the guest's file systems, if the guest has an agent. */
export async function freeze(socketPath: string): Promise<FreezeResult> {
  let result: FreezeResult = 'not_frozen'
  await withAgent(socketPath, async (agent) => {
    result = 'unknown'
    result = (await agent.execute('guest-fsfreeze-freeze', freezeMs)) ? 'frozen' : 'not_frozen'
  }).catch(() => {})
  return result
}

/** Thaws the guest's file systems, if they are frozen. Returns false if the agent refused or did not respond. */
export const thaw = (socketPath: string): Promise<boolean> =>
  withAgent(socketPath, (agent) => agent.execute('guest-fsfreeze-thaw', thawMs)).catch(() => false)
