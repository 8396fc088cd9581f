import { randomBytes } from 'node:crypto'
import { Duplex } from 'node:stream'
import { type TcpSegment, tcpFlags } from './packets.ts'

/** The payload of a 1500-byte packet after the IP and TCP headers. */
const maxSegmentBytes = 1460
const minSegmentBytes = 64
const receiveBytes = 512 * 1024
const maxInFlightBytes = 1024 * 1024
const windowShift = 4
const firstRetryMs = 300
const maxRetryMs = 5_000
const giveUpMs = 120_000
const duplicatesBeforeRetry = 3

export interface Outgoing {
  sequence: number
  acknowledgement: number
  flags: number
  window: number
  options?: Buffer
  payload: Buffer
}

interface SentSegment {
  sequence: number
  /** SYN and FIN count as one byte each. */
  length: number
  flags: number
  payload: Buffer
}

/**
 * The host's end of one TCP connection with a guest. The unix socket between them has no congestion and does
 * not reorder segments; a segment is lost only when a queue is full. Segments that arrive after a lost one
 * are dropped, and the guest sends them again. Retry intervals do not depend on measured round-trip times.
 */
export class TcpConnection extends Duplex {
  readonly #send: (segment: Outgoing) => void
  readonly #onClosed: () => void
  readonly #unacknowledged: SentSegment[] = []
  #state: 'connecting' | 'accepting' | 'open' = 'connecting'
  #sendNext = randomBytes(4).readUInt32BE()
  #receiveNext = 0
  #peerWindow = 0
  #peerShift = 0
  #peerSegmentBytes = 536
  #advertised = receiveBytes
  #waiting: Buffer = Buffer.alloc(0)
  #onWritten: (() => void) | null = null
  #onEnded: (() => void) | null = null
  #hasSentEnd = false
  #hasReceivedEnd = false
  #duplicates = 0
  /** All data up to this sequence number was sent again after the last loss. */
  #recoverUntil = this.#sendNext
  #needsAck = false
  #retryMs = firstRetryMs
  #retry: NodeJS.Timeout | null = null
  #progressAtMs = Date.now()

  private constructor(send: (segment: Outgoing) => void, onClosed: () => void) {
    super({ readableHighWaterMark: receiveBytes })
    this.#send = send
    this.#onClosed = onClosed
    // Users of the connection listen for `close`; an error before that must not crash the process.
    this.on('error', () => {})
  }

  /** Opens a connection to the guest. */
  static toGuest(send: (segment: Outgoing) => void, onClosed: () => void): TcpConnection {
    const connection = new TcpConnection(send, onClosed)
    connection.#enqueue(tcpFlags.syn, Buffer.alloc(0))
    return connection
  }

  /** Accepts a connection that the guest opens with this SYN. */
  static fromGuest(syn: TcpSegment, send: (segment: Outgoing) => void, onClosed: () => void): TcpConnection {
    const connection = new TcpConnection(send, onClosed)
    connection.#state = 'accepting'
    connection.#readSyn(syn)
    connection.#enqueue(tcpFlags.syn | tcpFlags.ack, Buffer.alloc(0))
    return connection
  }

  receive(segment: TcpSegment): void {
    if (this.destroyed) return
    if (this.#state === 'connecting') this.#receiveSynAck(segment)
    else this.#receiveNextSegment(segment)
  }

  #receiveNextSegment(segment: TcpSegment): void {
    const { flags } = segment
    if (flags & tcpFlags.rst) {
      if (segment.sequence === this.#receiveNext) this.destroy(resetByGuest())
      return
    }
    // A repeated SYN means that the acknowledgement was lost.
    if (flags & tcpFlags.syn) {
      this.#needsAck = true
      return
    }
    if (flags & tcpFlags.ack) this.#receiveAck(segment)
    if (!this.destroyed) this.#take(segment)
    this.#pump()
  }

  /** Sends one acknowledgement for all segments of one read. */
  flush(): void {
    if (this.#needsAck && !this.destroyed) this.#sendNow(tcpFlags.ack, this.#sendNext, Buffer.alloc(0))
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#waiting = chunk
    this.#onWritten = done
    this.#pump()
  }

  /** Completes when the guest has acknowledged everything, because any segment may have to be sent again. */
  override _final(done: () => void): void {
    this.#onEnded = done
    this.#pump()
  }

  override _read(): void {}

  /** Announces a larger window when a slow reader has made room, without waiting for the guest to probe. */
  override read(size?: number): Buffer | null {
    const chunk = super.read(size)
    if (this.#state === 'open' && this.#advertised < receiveBytes / 2 && this.#window() >= receiveBytes / 2) {
      this.#needsAck = true
      this.flush()
    }
    return chunk
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#retry) clearTimeout(this.#retry)
    const isOver = this.#hasReceivedEnd && this.#hasSentEnd
    if (!isOver) this.#sendNow(tcpFlags.rst | tcpFlags.ack, this.#sendNext, Buffer.alloc(0))
    this.#onClosed()
    this.#onWritten?.()
    done(error)
  }

  #receiveSynAck(segment: TcpSegment): void {
    const { flags } = segment
    if (!(flags & tcpFlags.ack) || segment.acknowledgement !== this.#sendNext) return
    if (flags & tcpFlags.rst) {
      this.destroy(resetByGuest())
      return
    }
    if (!(flags & tcpFlags.syn)) return
    this.#readSyn(segment)
    this.#open(segment)
    this.#needsAck = true
    this.flush()
    this.#pump()
  }

  #readSyn(syn: TcpSegment): void {
    this.#receiveNext = (syn.sequence + 1) >>> 0
    this.#peerShift = syn.windowShift ?? 0
    this.#peerSegmentBytes = Math.max(
      minSegmentBytes,
      Math.min(syn.maxSegmentBytes ?? this.#peerSegmentBytes, maxSegmentBytes),
    )
    this.#peerWindow = syn.window
  }

  #open(segment: TcpSegment): void {
    this.#unacknowledged.shift()
    this.#state = 'open'
    this.#peerWindow = segment.flags & tcpFlags.syn ? segment.window : segment.window << this.#peerShift
    this.#recordProgress()
    this.emit('connect')
  }

  #receiveAck(segment: TcpSegment): void {
    if (this.#state === 'accepting') {
      if (segment.acknowledgement === this.#sendNext) this.#open(segment)
      return
    }
    const oldest = this.#unacknowledged[0]
    const before = oldest?.sequence ?? this.#sendNext
    const advancedBy = (segment.acknowledgement - before) | 0
    if (advancedBy < 0 || ((this.#sendNext - segment.acknowledgement) | 0) < 0) return
    const window = segment.window << this.#peerShift
    const isRepeated = advancedBy === 0 && segment.payload.length === 0 && window === this.#peerWindow
    // A guest repeats its acknowledgement for each segment that it received twice. Treating this as a loss would send
    // everything twice from then on.
    const isRecovering = ((this.#recoverUntil - segment.acknowledgement) | 0) >= 0
    this.#peerWindow = window
    if (isRepeated && !isRecovering && ++this.#duplicates === duplicatesBeforeRetry) this.#resendAll()
    if (advancedBy === 0) return
    this.#duplicates = 0
    for (let first = this.#unacknowledged[0]; first; first = this.#unacknowledged[0]) {
      const acknowledgedBytes = (segment.acknowledgement - first.sequence) | 0
      if (acknowledgedBytes < first.length) {
        if (acknowledgedBytes > 0) {
          first.payload = first.payload.subarray(acknowledgedBytes)
          first.sequence = segment.acknowledgement
          first.length -= acknowledgedBytes
        }
        break
      }
      this.#unacknowledged.shift()
    }
    this.#recordProgress()
    if (this.#hasSentEnd && this.#unacknowledged.length === 0) this.#onEnded?.()
  }

  /** Accepts data that is in order and within the announced window. */
  #take(segment: TcpSegment): void {
    const skip = (this.#receiveNext - segment.sequence) | 0
    const hasEnd = (segment.flags & tcpFlags.fin) !== 0
    if (segment.payload.length === 0 && !hasEnd) return
    this.#needsAck = true
    if (skip < 0 || skip > segment.payload.length || this.#hasReceivedEnd) return
    const payload = segment.payload.subarray(skip)
    if (payload.length > this.#window() + maxSegmentBytes) return
    this.#receiveNext = (this.#receiveNext + payload.length) >>> 0
    if (payload.length > 0) this.push(Buffer.from(payload))
    if (!hasEnd) return
    this.#receiveNext = (this.#receiveNext + 1) >>> 0
    this.#hasReceivedEnd = true
    this.push(null)
  }

  /** Sends waiting data, as far as the guest's window allows. */
  #pump(): void {
    if (this.#state !== 'open' || this.destroyed) return
    while (this.#waiting.length > 0) {
      const room = Math.min(this.#peerWindow, maxInFlightBytes) - this.#bytesInFlight()
      // If the window is closed, the retry probes it with single bytes.
      const length = Math.min(room, this.#peerSegmentBytes, this.#waiting.length)
      if (length <= 0) {
        if (this.#unacknowledged.length === 0) this.#armRetry()
        return
      }
      this.#enqueue(tcpFlags.ack | tcpFlags.psh, this.#waiting.subarray(0, length))
      this.#waiting = this.#waiting.subarray(length)
    }
    const done = this.#onWritten
    this.#onWritten = null
    done?.()
    if (this.#onEnded && !this.#hasSentEnd) {
      this.#hasSentEnd = true
      this.#enqueue(tcpFlags.fin | tcpFlags.ack, Buffer.alloc(0))
    }
  }

  #enqueue(flags: number, payload: Buffer): void {
    const length = payload.length + (flags & (tcpFlags.syn | tcpFlags.fin) ? 1 : 0)
    const sequence = this.#sendNext
    this.#unacknowledged.push({ sequence, length, flags, payload })
    this.#sendNext = (this.#sendNext + length) >>> 0
    this.#sendNow(flags, sequence, payload)
    this.#armRetry()
  }

  #sendNow(flags: number, sequence: number, payload: Buffer): void {
    this.#needsAck = false
    this.#advertised = this.#window()
    const isSyn = (flags & tcpFlags.syn) !== 0
    this.#send({
      ...{ sequence, flags, payload },
      acknowledgement: this.#state === 'connecting' ? 0 : this.#receiveNext,
      window: Math.min(0xffff, isSyn ? this.#advertised : this.#advertised >> windowShift),
      ...(isSyn && { options: synOptions }),
    })
  }

  /** Sends everything again, because a receiver that drops out-of-order segments has kept none after the lost one. */
  #resendAll(): void {
    this.#recoverUntil = this.#sendNext
    for (const { flags, sequence, payload } of this.#unacknowledged) this.#sendNow(flags, sequence, payload)
  }

  #armRetry(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null
      if (this.destroyed) return
      if (Date.now() - this.#progressAtMs > giveUpMs) {
        this.destroy(new Error('the guest does not respond'))
        return
      }
      this.#retryMs = Math.min(this.#retryMs * 2, maxRetryMs)
      if (this.#unacknowledged.length > 0) this.#resendAll()
      else if (this.#waiting.length > 0 && this.#state === 'open') {
        const probe = this.#waiting.subarray(0, 1)
        this.#waiting = this.#waiting.subarray(1)
        this.#enqueue(tcpFlags.ack | tcpFlags.psh, probe)
      }
      if (this.#unacknowledged.length > 0) this.#armRetry()
    }, this.#retryMs)
  }

  #recordProgress(): void {
    this.#progressAtMs = Date.now()
    this.#retryMs = firstRetryMs
    if (this.#retry) clearTimeout(this.#retry)
    this.#retry = null
    if (this.#unacknowledged.length > 0) this.#armRetry()
  }

  #bytesInFlight(): number {
    const first = this.#unacknowledged[0]
    return first ? (this.#sendNext - first.sequence) >>> 0 : 0
  }

  #window(): number {
    return Math.max(0, receiveBytes - this.readableLength)
  }
}

/** Our maximum segment size and window scale. */
const synOptions = Buffer.from([2, 4, maxSegmentBytes >> 8, maxSegmentBytes & 0xff, 1, 3, 3, windowShift])

function resetByGuest(): Error {
  return Object.assign(new Error('the guest refused or reset the connection'), { code: 'ECONNRESET' })
}
