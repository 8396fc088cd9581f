import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type TcpSegment, tcpFlags } from '../../src/engines/qemu/forwarder/packets.ts'
import { type Outgoing, TcpConnection } from '../../src/engines/qemu/forwarder/tcp.ts'

/** Streams advance with turns of the event loop, and the timeouts of TCP with the clock of the test. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const turns = () => new Promise((resolve) => setImmediate(resolve))

/** Creates two ends of one connection, which loses the packets that `isLost` selects. */
async function wire(isLost: () => boolean = () => false) {
  let guest: TcpConnection | undefined
  const toHost = (segment: Outgoing) =>
    void setImmediate(() => {
      if (isLost()) return
      host.receive(asReceived(segment))
      host.flush()
    })
  const toGuest = (segment: Outgoing) =>
    void setImmediate(() => {
      if (isLost()) return
      const arrived = asReceived(segment)
      if (!guest && arrived.flags & tcpFlags.syn) guest = TcpConnection.fromGuest(arrived, toHost, () => {})
      else guest?.receive(arrived)
      guest?.flush()
    })
  const host = TcpConnection.toGuest(toGuest, () => {})
  let isOpen = false
  host.once('connect', () => {
    isOpen = true
  })
  await until(() => isOpen)
  return { host, guest: guest! }
}

/** Returns the segment as the other end parses it. */
function asReceived(segment: Outgoing): TcpSegment {
  const isSyn = (segment.flags & tcpFlags.syn) !== 0
  return {
    ...{ sourcePort: 1, destinationPort: 2, ...segment },
    maxSegmentBytes: isSyn ? segment.options!.readUInt16BE(2) : null,
    windowShift: isSyn ? segment.options![7]! : null,
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) {
    await turns()
    await vi.advanceTimersByTimeAsync(50)
  }
}

test('data written at either end of a TCP connection arrives complete and in order despite packet loss', async () => {
  const loss = fc.record({ seed: fc.integer(), share: fc.double({ min: 0, max: 0.1, noNaN: true }) })
  const sizes = fc.tuple(fc.integer({ min: 0, max: 60_000 }), fc.integer({ min: 0, max: 60_000 }))
  await fc.assert(
    fc.asyncProperty(loss, sizes, async ({ seed, share }, [up, down]) => {
      let state = seed
      const isLost = () => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) | 0
        return ((state >>> 8) & 0xffff) / 0x10000 < share
      }
      const { host, guest } = await wire(isLost)
      const [sentUp, sentDown] = [content(up), content(down)]
      const received = Promise.all([text(guest), text(host)])
      host.end(sentUp)
      guest.end(sentDown)
      await until(() => host.readableEnded && guest.readableEnded)
      expect((await received).map(digest)).toEqual([digest(sentUp), digest(sentDown)])
      await until(() => host.destroyed && guest.destroyed)
    }),
    { numRuns: 20 },
  )
})

test('a TCP connection stops the sender while the reader does not read, and continues when it does', async () => {
  const { host, guest } = await wire()
  const sent = content(4_000_000)
  host.end(sent)
  for (let i = 0; i < 200; i++) await turns()
  expect(guest.readableLength).toBeLessThan(600_000)
  const received = text(guest)
  guest.end()
  await until(() => guest.readableEnded)
  expect(digest(await received)).toBe(digest(sent))
})

test('a TCP connection that one end destroys is closed at the other end, too', async () => {
  const { host, guest } = await wire()
  host.destroy()
  await until(() => guest.destroyed)
  expect(guest.errored).toMatchObject({ code: 'ECONNRESET' })
})

test('a TCP connection to a guest that never responds is given up', async () => {
  const host = TcpConnection.toGuest(
    () => {},
    () => {},
  )
  await vi.advanceTimersByTimeAsync(130_000)
  expect(host.errored).toMatchObject({ message: 'the guest does not respond' })
})

/** Reads to the end without an iterator, which would destroy the connection while its other half may be in use. */
function text(connection: TcpConnection): Promise<string> {
  const chunks: Buffer[] = []
  connection.on('data', (chunk) => chunks.push(chunk))
  return new Promise((resolve) => connection.once('end', () => resolve(Buffer.concat(chunks).toString())))
}

function content(bytes: number): string {
  return 'slipway-'.repeat(bytes / 8 + 1).slice(0, bytes)
}

function digest(value: string): string {
  return `${value.length} ${createHash('sha256').update(value).digest('hex')}`
}
