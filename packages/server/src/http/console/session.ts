import { consoleCloseCodes, vmConsoleStates } from '@slipway/contract'
import type { WebSocket } from 'ws'
import { type GuestConsole, readSerialLog } from '../../operations/vm/serial-log.ts'
import type { Services } from '../../services.ts'
import { findConsoleState, leaveConsole, renewConsole } from '../../store/compute/consoles.ts'
import type { VmRow } from '../../store/compute/vms.ts'

/**
 * A client with more unsent output than this is disconnected, because the guest and the log do not wait for
 * clients.
 */
const maxUnsentBytes = 1024 * 1024
/** Pauses between two reads of the log: right after input, and otherwise. */
const [quickMs, slowMs] = [30, 250]
const quickForMs = 1_000
const idleMs = 30 * 60_000
/** How long a client may take to respond to the close message. */
const closingMs = 2_000
/** The lease of a writer. It is long enough that a few renewals may fail. */
export const leaseS = 15
/** Proxies close connections on which nothing is sent for a long time, so each renewal also sends a ping. */
const renewEveryTicks = 5

export interface ConsoleOptions {
  services: Services
  vm: VmRow
  sessionId: string
  /** Null for a session that only reads. */
  console: GuestConsole | null
  /** Called once, with the number of bytes that went to and came from the guest. */
  onEnd: (bytes: { input: number; output: number }) => void
}

/**
 * One open console. Sessions read their output from the serial log, so they cannot miss output that another session
 * has read, or delay the guest. Only a session that writes is connected to the guest. If the engine sends output
 * through this connection, the session shows that output instead of the log.
 */
export class ConsoleSession {
  readonly #options: ConsoleOptions
  readonly #socket: WebSocket
  readonly #bytes = { input: 0, output: 0 }
  #isOpen = true
  #activeAtMs = performance.now()
  #inputAtMs = Number.NEGATIVE_INFINITY
  #ticks = 0
  #written: Promise<void> = Promise.resolve()
  #wake: (() => void) | undefined

  constructor(socket: WebSocket, options: ConsoleOptions) {
    this.#socket = socket
    this.#options = options
    const { console: guest, sessionId } = options
    socket.on('error', () => {})
    socket.on('close', () => void this.#end())
    socket.on('message', (data: Buffer, isBinary) => void this.#receive(data, isBinary))
    const mode = guest ? 'write' : 'read'
    socket.send(JSON.stringify({ type: 'state', mode, session_id: sessionId }))
    guest?.onOutput?.((output) => this.#send(output))
    guest?.ended.then(() => this.close('off'))
    this.#follow().catch(() => this.close('gone'))
  }

  get vmId(): string {
    return this.#options.vm.id
  }

  close(reason: keyof typeof consoleCloseCodes): void {
    const { code, text } = consoleCloseCodes[reason]
    this.#close(code, text)
  }

  /** Called every second, and when the writer of the VM changes. */
  async check(): Promise<void> {
    const { services, vm, sessionId, console: guest } = this.#options
    const found = await findConsoleState(services.database, vm.id)
    if (!found || found.state === 'STATE_DELETING') return this.close('gone')
    if (!vmConsoleStates.includes(found.state)) return this.close('off')
    if (guest && found.writer_id !== sessionId) return this.close('takenOver')
    if (this.#ticks++ % renewEveryTicks === 0) {
      this.#socket.ping()
      if (guest) await renewConsole(services.database, vm.id, sessionId, leaseS)
    }
    if (performance.now() - this.#activeAtMs > idleMs) this.#close(1000, 'No activity for 30 minutes.')
  }

  /** Called when the server stops. */
  shutDown(): void {
    this.#close(1001, 'The server is restarting.')
  }

  #close(code: number, text: string): void {
    if (!this.#isOpen) return
    this.#socket.close(code, text)
    setTimeout(() => this.#socket.terminate(), closingMs).unref()
    void this.#end()
  }

  async #end(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#wake?.()
    const { services, vm, sessionId, console: guest, onEnd } = this.#options
    guest?.close()
    onEnd(this.#bytes)
    if (guest) await leaveConsole(services.database, vm.id, sessionId).catch(() => {})
  }

  async #receive(data: Buffer, isBinary: boolean): Promise<void> {
    const { console: guest } = this.#options
    if (!this.#isOpen) return
    if (!guest || !isBinary) return this.#close(1008, 'Input must be binary, and requires write mode.')
    this.#activeAtMs = this.#inputAtMs = performance.now()
    this.#bytes.input += data.length
    // Write in order, and read no more input until the guest has received this input. Otherwise, a guest that does
    // not read its console could fill the memory of this process.
    this.#socket.pause()
    this.#written = this.#written.then(() => guest.write(data)).catch(() => this.close('off'))
    await this.#written
    this.#socket.resume()
    this.#wake?.()
  }

  async #follow(): Promise<void> {
    const { services, vm, console: guest } = this.#options
    let offset: number | undefined
    while (this.#isOpen) {
      // A temporarily unavailable engine does not end the session.
      const read = await readSerialLog(services, vm, offset).catch(() => undefined)
      // The first read fills the screen with the end of the log. Later reads are ignored if the engine sends
      // the output.
      const isWanted = offset === undefined || !guest?.onOutput
      if (read) offset = read.nextOffset
      if (read?.content && isWanted) this.#send(Buffer.from(read.content))
      else await this.#pause()
    }
  }

  #pause(): Promise<void> {
    const ms = performance.now() - this.#inputAtMs < quickForMs ? quickMs : slowMs
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#wake = done
    })
  }

  #send(output: Buffer): void {
    if (!this.#isOpen) return
    if (this.#socket.bufferedAmount > maxUnsentBytes) {
      this.close('tooSlow')
      return
    }
    this.#activeAtMs = performance.now()
    this.#bytes.output += output.length
    this.#socket.send(output)
  }
}
