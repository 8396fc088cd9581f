import { spawn } from 'node:child_process'
import { mkdir, open } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../engine.ts'
import { redactedTail } from '../command.ts'
import { readText } from '../files.ts'
import type { Locks } from '../lock.ts'
import type { StatePaths } from '../paths.ts'
import { connectUnix, onLines } from '../unix-socket.ts'
import {
  type ForwardedVm,
  type ForwarderRequest,
  type ForwarderResponse,
  type ForwarderStatus,
  forwarderSocket,
  type VmForwards,
} from './protocol.ts'
import { proofMs, type SshProbeResult } from './ssh-probe.ts'

const startLimitMs = 10_000
const responseLimitMs = 5_000

interface PendingRequest {
  resolve(result: unknown): void
  reject(error: Error): void
  timer: NodeJS.Timeout
}

/** The engine's end of the control socket. Starts the forwarder if it is not running. */
export class ForwarderClient {
  readonly #paths: StatePaths
  readonly #program: string
  readonly #locks: Locks
  readonly #waiting = new Map<number, PendingRequest>()
  #connecting: Promise<Socket> | null = null
  #isClosed = false
  #nextId = 1

  constructor(paths: StatePaths, program: string, locks: Locks) {
    this.#paths = paths
    this.#program = program
    this.#locks = locks
  }

  set(vm: ForwardedVm): Promise<VmForwards> {
    return this.#ask<VmForwards>({ op: 'set', vm })
  }

  async remove(vmId: string): Promise<void> {
    const socket = this.#connecting ?? (await this.#reach())
    if (!socket) return
    if ('destroy' in socket) socket.destroy()
    await this.#ask({ op: 'remove', vmId })
  }

  probeSsh(vmId: string, timeoutMs: number, hostKey: string): Promise<SshProbeResult> {
    const request = { op: 'greeting', vmId, timeoutMs, hostKey } as const
    return this.#ask<SshProbeResult>(request, responseLimitMs + timeoutMs + proofMs)
  }

  status(): Promise<ForwarderStatus> {
    return this.#ask<ForwarderStatus>({ op: 'status' })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const socket = await this.#connecting?.catch(() => null)
    socket?.destroy()
  }

  async #ask<T>(request: ForwarderRequest, limitMs = responseLimitMs): Promise<T> {
    if (this.#isClosed) throw new EngineError('unavailable', 'the engine is closed')
    this.#connecting ??= this.#connect()
    const socket = await this.#connecting
    const id = this.#nextId++
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id)
        socket.destroy()
        reject(new EngineError('unavailable', `the forwarder did not respond within ${limitMs} ms`))
      }, limitMs)
      this.#waiting.set(id, { resolve: (result) => resolve(result as T), reject, timer })
      socket.write(`${JSON.stringify({ id, ...request })}\n`)
    })
  }

  async #connect(): Promise<Socket> {
    try {
      const socket = await this.#reachOrStart()
      socket.on('error', () => {})
      socket.on('close', () => this.#handleDisconnect())
      onLines(socket, (line) => this.#receive(JSON.parse(line)))
      return socket
    } catch (error) {
      this.#connecting = null
      throw error
    }
  }

  async #reachOrStart(): Promise<Socket> {
    return (
      (await this.#reach()) ??
      this.#locks.with('forwarder', AbortSignal.timeout(2 * startLimitMs), async () => {
        const until = Date.now() + startLimitMs
        let socket = await this.#reach()
        if (!socket) await this.#start()
        while (!socket && Date.now() < until) {
          await sleep(20)
          socket = await this.#reach()
        }
        if (socket) return socket
        const log = redactedTail((await readText(this.#paths.forwarderLog)) ?? '')
        throw new EngineError('unavailable', `the forwarder did not start: ${log}`)
      })
    )
  }

  #reach(): Promise<Socket | null> {
    return connectUnix(join(this.#paths.root, forwarderSocket), 1_000).catch(() => null)
  }

  async #start(): Promise<void> {
    await mkdir(this.#paths.root, { recursive: true, mode: 0o700 })
    const log = await open(this.#paths.forwarderLog, 'a', 0o600)
    const child = spawn(process.execPath, [this.#program, this.#paths.root], {
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    })
    child.on('error', () => {})
    child.unref()
    await log.close()
  }

  #receive(response: ForwarderResponse): void {
    const waiting = this.#waiting.get(response.id)
    if (!waiting) return
    this.#waiting.delete(response.id)
    clearTimeout(waiting.timer)
    if ('error' in response) waiting.reject(new EngineError('unavailable', `forwarder: ${response.error}`))
    else waiting.resolve(response.result)
  }

  #handleDisconnect(): void {
    this.#connecting = null
    for (const waiting of this.#waiting.values()) {
      clearTimeout(waiting.timer)
      waiting.reject(new EngineError('unavailable', 'the forwarder closed the connection'))
    }
    this.#waiting.clear()
  }
}
