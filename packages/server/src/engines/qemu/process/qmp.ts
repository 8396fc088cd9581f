import type { Socket } from 'node:net'
import { EngineError } from '../../engine.ts'
import { lastWords } from '../command.ts'
import { connectUnix, onLines } from '../unix-socket.ts'

interface QmpMessage {
  return?: unknown
  error?: { class: string; desc: string }
  event?: string
  data?: Record<string, unknown>
  QMP?: unknown
}

/** QEMU answered, and refused. */
export class QmpError extends Error {
  readonly errorClass: string
  constructor(command: string, error: { class: string; desc: string }) {
    super(`${command}: ${error.desc}`)
    this.name = 'QmpError'
    this.errorClass = error.class
  }
}

export interface QmpSession {
  execute<T = unknown>(command: string, args?: Record<string, unknown>): Promise<T>
  /** Resolves when an event arrives that the test accepts, counted from the session's begin. */
  event(name: string, accepts: (data: Record<string, unknown>) => boolean, timeoutMs: number): Promise<void>
}

/**
 * One conversation with a QEMU. It serves one client at a time, so each caller connects, says what it has to, and
 * leaves; a QEMU that does not answer in time is `unavailable`.
 */
export async function withQmp<T>(
  socketPath: string,
  timeoutMs: number,
  talk: (qmp: QmpSession) => Promise<T>,
): Promise<T> {
  let socket: Socket
  try {
    socket = await connectUnix(socketPath, timeoutMs)
  } catch (error) {
    throw new EngineError(
      'unavailable',
      `QEMU's control socket does not answer: ${lastWords((error as Error).message)}`,
      {
        cause: error,
      },
    )
  }
  const conversation = new Conversation(socket, timeoutMs)
  try {
    await conversation.greeting()
    await conversation.execute('qmp_capabilities')
    return await talk(conversation)
  } finally {
    socket.destroy()
  }
}

class Conversation implements QmpSession {
  readonly #socket: Socket
  readonly #timeoutMs: number
  readonly #inbox: QmpMessage[] = []
  readonly #events: QmpMessage[] = []
  #wake: () => void = () => {}
  #isClosed = false

  constructor(socket: Socket, timeoutMs: number) {
    this.#socket = socket
    this.#timeoutMs = timeoutMs
    onLines(socket, (line) => {
      const message = JSON.parse(line) as QmpMessage
      if (message.event) this.#events.push(message)
      else this.#inbox.push(message)
      this.#wake()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#isClosed = true
      this.#wake()
    })
  }

  async greeting(): Promise<void> {
    await this.#next('its greeting', this.#timeoutMs, () => this.#inbox.shift())
  }

  async execute<T>(command: string, args: Record<string, unknown> = {}): Promise<T> {
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args })}\n`)
    const answer = await this.#next(command, this.#timeoutMs, () => this.#inbox.shift())
    if (answer.error) throw new QmpError(command, answer.error)
    return answer.return as T
  }

  async event(name: string, accepts: (data: Record<string, unknown>) => boolean, timeoutMs: number) {
    await this.#next(`event ${name}`, timeoutMs, () =>
      this.#events.find((message) => message.event === name && accepts(message.data ?? {})),
    )
  }

  async #next(what: string, timeoutMs: number, take: () => QmpMessage | undefined): Promise<QmpMessage> {
    const until = Date.now() + timeoutMs
    for (;;) {
      const message = take()
      if (message) return message
      const leftMs = until - Date.now()
      if (this.#isClosed)
        throw new EngineError('unavailable', `QEMU closed its control socket before ${what}`)
      if (leftMs <= 0)
        throw new EngineError('unavailable', `QEMU said nothing for ${timeoutMs} ms, waiting for ${what}`)
      await new Promise<void>((resolve) => {
        // Whatever came while this process was held up is read before QEMU is said to be silent.
        const timer = setTimeout(() => setImmediate(resolve), leftMs)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}

/** Human monitor commands answer in prose: silence is success. */
export async function monitorCommand(qmp: QmpSession, commandLine: string): Promise<void> {
  const answer = await qmp.execute<string>('human-monitor-command', { 'command-line': commandLine })
  if (answer.trim()) throw new QmpError(commandLine, { class: 'GenericError', desc: answer.trim() })
}
