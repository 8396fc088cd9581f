import { connect, type Socket } from 'node:net'

const retryMs = 250
const maxFrameBytes = 70_000
/** A guest that does not read loses frames, as on a real wire, instead of filling our memory. */
const maxQueuedBytes = 4 * 1024 * 1024

/**
 * The other end of a network card. QEMU listens on a unix socket in the VM's folder and is dialled from here, so that a
 * restarted forwarder finds every guest again. QEMU's framing: four bytes of length, then the Ethernet frame.
 */
export class FrameSocket {
  readonly #path: string
  readonly #onFrame: (frame: Buffer) => void
  /** After all frames that came at once, and when the connection broke. */
  readonly #onPause: (isBroken: boolean) => void
  #socket: Socket | null = null
  #retry: NodeJS.Timeout | null = null
  #pending: Buffer = Buffer.alloc(0)
  #isClosed = false

  constructor(
    path: string,
    onFrame: (frame: Buffer) => void,
    onPause: (isBroken: boolean) => void = () => {},
  ) {
    this.#path = path
    this.#onFrame = onFrame
    this.#onPause = onPause
    this.#dial()
  }

  get isConnected(): boolean {
    return this.#socket?.readyState === 'open'
  }

  /** False when the frame was dropped. */
  send(frame: Buffer): boolean {
    if (!this.isConnected || this.#socket!.writableLength > maxQueuedBytes) return false
    const length = Buffer.alloc(4)
    length.writeUInt32BE(frame.length)
    this.#socket!.write(Buffer.concat([length, frame]))
    return true
  }

  close(): void {
    this.#isClosed = true
    if (this.#retry) clearTimeout(this.#retry)
    this.#socket?.destroy()
  }

  #dial(): void {
    const socket = connect(this.#path)
    this.#socket = socket
    this.#pending = Buffer.alloc(0)
    socket.on('data', (chunk) => this.#receive(chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#onPause(true)
      if (!this.#isClosed) this.#retry = setTimeout(() => this.#dial(), retryMs)
    })
  }

  #receive(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    while (this.#pending.length >= 4) {
      const length = this.#pending.readUInt32BE(0)
      if (length > maxFrameBytes) {
        this.#socket?.destroy()
        return
      }
      if (this.#pending.length < 4 + length) break
      const frame = this.#pending.subarray(4, 4 + length)
      this.#pending = this.#pending.subarray(4 + length)
      this.#onFrame(frame)
    }
    this.#onPause(false)
  }
}
