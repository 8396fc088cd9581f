import { randomInt } from 'node:crypto'
import type { Socket } from 'node:net'
import { connectUnix, onLines } from '../unix-socket.ts'

/** Some guest agents poll their port only once a second, so allow several polls. */
const syncMs = 3_000
const freezeMs = 8_000
const thawMs = 5_000
/** The responses that we expect are short. If a guest sends more, close the connection. */
const maxReceivedBytes = 64 * 1024

/** The guest agent did not respond, or refused. */
class AgentError extends Error {}

/**
 * A session with the QEMU guest agent inside a guest. The tenant controls everything that the agent sends, so only the number
 * and the success of a response are used.
 */
class AgentSession {
  readonly #socket: Socket
  readonly #waiting = new Set<(line: string | null) => void>()

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('error', () => {})
    let receivedBytes = 0
    socket.on('data', (chunk) => {
      receivedBytes += chunk.length
      if (receivedBytes > maxReceivedBytes) socket.destroy()
    })
    const tell = (line: string | null) => {
      for (const hear of this.#waiting) hear(line)
    }
    onLines(socket, tell)
    socket.on('close', () => tell(null))
  }

  /** Earlier responses that were never read may come first, so a number shows which response is ours. */
  async synchronize(): Promise<void> {
    const id = randomInt(1, 2 ** 31)
    await this.#ask({ execute: 'guest-sync', arguments: { id } }, syncMs, (answer) => answer.return === id)
  }

  async execute(command: string, limitMs: number): Promise<void> {
    const answer = await this.#ask({ execute: command }, limitMs, () => true)
    if (!('return' in answer)) throw new AgentError(`${command} was refused`)
  }

  #ask(
    request: object,
    limitMs: number,
    isOurs: (answer: Record<string, unknown>) => boolean,
  ): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer)
        this.#waiting.delete(hear)
        settle()
      }
      const timer = setTimeout(() => end(() => reject(new AgentError('no response'))), limitMs)
      const hear = (line: string | null) => {
        if (line === null) return end(() => reject(new AgentError('the guest closed the connection')))
        const answer = parse(line)
        if (answer && isOurs(answer)) end(() => resolve(answer))
      }
      this.#waiting.add(hear)
      this.#socket.write(`${JSON.stringify(request)}\n`)
    })
  }
}

function parse(line: string): Record<string, unknown> | null {
  try {
    const answer: unknown = JSON.parse(line)
    return typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>) : null
  } catch {
    return null
  }
}

async function withAgent<T>(socketPath: string, talk: (agent: AgentSession) => Promise<T>): Promise<T> {
  const socket = await connectUnix(socketPath, syncMs)
  try {
    const agent = new AgentSession(socket)
    await agent.synchronize()
    return await talk(agent)
  } finally {
    socket.destroy()
  }
}

/**
 * Freezes the file systems of the guest. Returns false if the guest has no agent, or if the agent fails or does not respond in
 * time.
 */
export const freeze = (socketPath: string): Promise<boolean> =>
  withAgent(socketPath, (agent) => agent.execute('guest-fsfreeze-freeze', freezeMs)).then(
    () => true,
    () => false,
  )

/** Thaws the file systems of the guest, if they are frozen. */
export const thaw = (socketPath: string): Promise<boolean> =>
  withAgent(socketPath, (agent) => agent.execute('guest-fsfreeze-thaw', thawMs)).then(
    () => true,
    () => false,
  )
