import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { GuestLink } from '../../src/engines/qemu/forwarder/guest-link.ts'
import {
  type Addresses,
  readIpv4,
  readTcp,
  tcpFlags,
  tcpFrame,
} from '../../src/engines/qemu/forwarder/packets.ts'
import { networkLimits } from '../../src/engines/qemu/forwarder/rate-limit.ts'
import { type Outgoing, TcpConnection } from '../../src/engines/qemu/forwarder/tcp.ts'

/** 8 MB/s. */
const gbps = 0.064
const sentBytes = 4_000_000
/** Longer than the forwarder waits for an acknowledgement. */
const pauseMs = 400
const guestMac = '02:00:00:00:00:01'

const folder = mkdtempSync(join(tmpdir(), 'slipway-limited-'))
const path = join(folder, 'card.sock')
const server = createServer()
let link: GuestLink
let guestCard: Socket
let receivedBytes = 0

beforeAll(async () => {
  server.listen(path)
  await once(server, 'listening')
  const outbound = { dial: () => null, datagram: () => {} }
  link = new GuestLink(path, guestMac, outbound, networkLimits(gbps))
  ;[guestCard] = (await once(server, 'connection')) as [Socket]
  await eventually(() => link.isConnected)
  answerAsGuest(guestCard)
})
afterAll(() => {
  link.close()
  server.close()
  rmSync(folder, { recursive: true })
})

test('little data is sent again to a guest that pauses for a moment', async () => {
  link.connect(7_000).end(Buffer.alloc(sentBytes))
  await eventually(() => receivedBytes > sentBytes / 10)
  guestCard.pause()
  await sleep(pauseMs)
  guestCard.resume()
  await eventually(() => receivedBytes === sentBytes)
  // At most the data in flight is sent again. Frame headers add about 5%.
  expect(link.traffic.sentBytes).toBeLessThan(sentBytes * 1.4)
})

/** Acts as a guest whose ports accept every connection and read it to its end. */
function answerAsGuest(card: Socket): void {
  const open = new Map<number, TcpConnection>()
  let pending = Buffer.alloc(0)
  card.on('error', () => {})
  card.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk])
    while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32BE(0)) {
      const length = pending.readUInt32BE(0)
      const frame = pending.subarray(4, 4 + length)
      pending = pending.subarray(4 + length)
      take(frame)
    }
  })
  const take = (frame: Buffer) => {
    const packet = readIpv4(frame)!
    const segment = readTcp(packet)!
    const known = open.get(segment.destinationPort)
    if (known) {
      known.receive(segment)
      known.flush()
      return
    }
    if (!(segment.flags & tcpFlags.syn)) return
    const addresses: Addresses = {
      sourceMac: frame.subarray(0, 6),
      destinationMac: frame.subarray(6, 12),
      source: packet.destination,
      destination: packet.source,
    }
    const ports = { sourcePort: segment.destinationPort, destinationPort: segment.sourcePort }
    const send = (outgoing: Outgoing) => {
      const reply = tcpFrame(addresses, { ...ports, ...outgoing }, outgoing.options)
      const header = Buffer.alloc(4)
      header.writeUInt32BE(reply.length)
      card.write(Buffer.concat([header, reply]))
    }
    const connection = TcpConnection.fromGuest(segment, send, () => {})
    open.set(segment.destinationPort, connection)
    connection.on('data', (data: Buffer) => {
      receivedBytes += data.length
    })
  }
}
