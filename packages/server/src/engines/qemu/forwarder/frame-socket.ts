import { connect, type Socket } from 'node:net'
import { uint32 } from '../../../domain/guest/ssh-wire.ts'
import type { NetworkLimits } from './rate-limit.ts'

const retryMs = 250
const maxFrameBytes = 70_000
/** A guest that does not read loses frames, as on a real wire, instead of filling the forwarder's memory. */
const maxQueuedBytes = 4 * 1024 * 1024

/**
 * The forwarder's end of a guest's network interface. QEMU listens on a unix socket in the VM's folder and
 * the forwarder connects, so that a restarted forwarder finds every guest again. Each Ethernet frame is
 * preceded by its length in four bytes.
 */
export class FrameSocket {
  readonly #path: string
  readonly #limits: NetworkLimits
  readonly #onFrame: (frame: Buffer) => void
  /** Called after all frames of one read are processed, and when the connection breaks. */
  readonly #onPause: (isBroken: boolean) => void
  #socket: Socket | null = null
  #retry: NodeJS.Timeout | null = null
  #pending: Buffer = Buffer.alloc(0)
  #isClosed = false
  /** Frames to the guest that wait because of the rate limit. */
  #queue: Buffer[] = []
  #queuedBytes = 0
  /** Bytes of the frames received from the guest, and of the frames sent to it. */
  receivedBytes = 0
  sentBytes = 0

  constructor(
    path: string,
    limits: NetworkLimits,
    onFrame: (frame: Buffer) => void,
    onPause: (isBroken: boolean) => void = () => {},
  ) {
    this.#path = path
    this.#limits = limits
    this.#onFrame = onFrame
    this.#onPause = onPause
    this.#dial()
  }

  get isConnected(): boolean {
    return this.#socket?.readyState === 'open'
  }

  send(frame: Buffer): void {
    if (!this.isConnected || this.#socket!.writableLength + this.#queuedBytes > maxQueuedBytes) return
    this.#queue.push(frame)
    this.#queuedBytes += frame.length
    if (this.#queue.length === 1) this.#drain()
  }

  /** Sends as much as the limit allows now, and continues when it allows more. */
  #drain(): void {
    while (this.#queue.length > 0 && this.#limits.sent.waitMs === 0) {
      const frame = this.#queue.shift()!
      this.#queuedBytes -= frame.length
      this.#limits.sent.take(frame.length)
      this.sentBytes += frame.length
      this.#socket!.write(Buffer.concat([uint32(frame.length), frame]))
    }
    if (this.#queue.length > 0) setTimeout(() => this.#drain(), this.#limits.sent.waitMs)
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
    this.#queue = []
    this.#queuedBytes = 0
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
      this.receivedBytes += length
      this.#limits.received.take(length)
      this.#onFrame(frame)
    }
    this.#onPause(false)
    this.#waitForLimit()
  }

  /**
   * Pauses reading until the limit allows more. The socket fills, and the guest's interface waits instead of
   * losing frames.
   */
  #waitForLimit(): void {
    const { waitMs } = this.#limits.received
    if (waitMs === 0) return
    const socket = this.#socket!
    socket.pause()
    setTimeout(() => socket.resume(), waitMs)
  }
}
