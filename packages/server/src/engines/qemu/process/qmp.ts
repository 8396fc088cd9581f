import type { Socket } from 'node:net'
import { EngineError } from '../../engine.ts'
import { redactedTail } from '../command.ts'
import { connectUnix, onLines } from '../unix-socket.ts'

interface QmpMessage {
  return?: unknown
  error?: { class: string; desc: string }
  event?: string
}

/** QEMU responded, but rejected the command. */
export class QmpError extends Error {
  override readonly name = 'QmpError'
}

/**
 * Runs one session with QEMU's control socket. QEMU serves one client at a time, so each caller connects,
 * sends its commands and disconnects. Throws `unavailable` if QEMU does not respond in time.
 */
export async function withQmp<T>(
  socketPath: string,
  timeoutMs: number,
  work: (qmp: QmpSession) => Promise<T>,
): Promise<T> {
  const socket = await connectUnix(socketPath, timeoutMs).catch((cause: Error) => {
    const message = `QEMU's control socket does not respond: ${redactedTail(cause.message)}`
    throw new EngineError('unavailable', message, { cause })
  })
  const session = new QmpSession(socket, timeoutMs)
  try {
    await session.greeting()
    await session.execute('qmp_capabilities')
    return await work(session)
  } finally {
    socket.destroy()
  }
}

export class QmpSession {
  readonly #socket: Socket
  readonly #timeoutMs: number
  readonly #inbox: QmpMessage[] = []
  #wake: () => void = () => {}
  #isClosed = false

  constructor(socket: Socket, timeoutMs: number) {
    this.#socket = socket
    this.#timeoutMs = timeoutMs
    onLines(socket, (line) => {
      const message = JSON.parse(line) as QmpMessage
      if (message.event) return
      this.#inbox.push(message)
      this.#wake()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#isClosed = true
      this.#wake()
    })
  }

  async greeting(): Promise<void> {
    await this.#next('send its greeting')
  }

  async execute<T>(command: string, args: Record<string, unknown> = {}): Promise<T> {
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args })}\n`)
    const response = await this.#next(`respond to ${command}`)
    if (response.error) throw new QmpError(`${command}: ${response.error.desc}`)
    return response.return as T
  }

  /** Returns the next message. `action` says what QEMU has not done if none arrives. */
  async #next(action: string): Promise<QmpMessage> {
    const until = Date.now() + this.#timeoutMs
    for (;;) {
      const message = this.#inbox.shift()
      if (message) return message
      const leftMs = until - Date.now()
      if (this.#isClosed)
        throw new EngineError('unavailable', `QEMU closed its control socket and did not ${action}`)
      if (leftMs <= 0)
        throw new EngineError('unavailable', `QEMU did not ${action} within ${this.#timeoutMs} ms`)
      await new Promise<void>((resolve) => {
        // Input that arrived while this process was paused is read before the time limit applies.
        const timer = setTimeout(() => setImmediate(resolve), leftMs)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}
