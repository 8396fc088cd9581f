import type { Duplex } from 'node:stream'
import { parseCidr } from '@slipway/contract'
import { numberToAddress } from '../../../domain/addresses.ts'
import { accessNetwork } from '../process/access-network.ts'
import { FrameSocket } from './frame-socket.ts'
import {
  type Addresses,
  arpReply,
  type Ipv4Packet,
  protocols,
  readArpRequest,
  readIpv4,
  readTcp,
  readUdp,
  type TcpSegment,
  tcpFlags,
  tcpFrame,
  type UdpDatagram,
  udpFrame,
} from './packets.ts'
import type { NetworkLimits } from './rate-limit.ts'
import { type Outgoing, TcpConnection } from './tcp.ts'

/** A locally administered MAC address that no guest's interface has. */
const ownMac = Buffer.from('02534c490001', 'hex')
const hostAddress = parseCidr(accessNetwork.host)!.base
const guestAddress = parseCidr(accessNetwork.guest)!.base
const firstPort = 32_768
const lastPort = 60_999

/** Handles connections and datagrams from a guest. */
export interface Outbound {
  /** Opens a connection to the destination; returns null if the guest is not allowed to connect to it. */
  dial(destination: string, port: number, guestPort: number): Duplex | null
  datagram(destination: string, datagram: UdpDatagram, reply: (payload: Buffer) => void): void
}

/**
 * The host's end of a guest's access network, over the unix socket of the guest's interface. It opens no port
 * on this machine that other users could find, and QEMU itself needs no network.
 */
export class GuestLink {
  readonly #frames: FrameSocket
  readonly #guestMac: Buffer
  readonly #outbound: Outbound
  readonly #connections = new Map<string, TcpConnection>()
  /** Outgoing connections of the guest that are not established yet. */
  readonly #dialling = new Map<string, Duplex>()
  #nextPort = firstPort

  constructor(socketPath: string, guestMac: string, outbound: Outbound, limits: NetworkLimits) {
    this.#guestMac = Buffer.from(guestMac.replaceAll(':', ''), 'hex')
    this.#outbound = outbound
    this.#frames = new FrameSocket(
      socketPath,
      limits,
      (frame) => this.#receive(frame),
      (isBroken) => (isBroken ? this.#dropAll() : this.#flush()),
    )
  }

  get isConnected(): boolean {
    return this.#frames.isConnected
  }

  get traffic(): { receivedBytes: number; sentBytes: number } {
    return this.#frames
  }

  /**
   * Connects to a port of the guest. The connection emits `connect` when it is established, otherwise `error`
   * and `close`.
   */
  connect(guestPort: number): TcpConnection {
    const port = this.#freePort(guestPort)
    const key = keyOf(hostAddress, port, guestPort)
    const send = (segment: Outgoing) =>
      this.#send(hostAddress, { sourcePort: port, destinationPort: guestPort, ...segment })
    const connection = TcpConnection.toGuest(send, () => this.#connections.delete(key))
    this.#connections.set(key, connection)
    return connection
  }

  close(): void {
    this.#frames.close()
    this.#dropAll()
  }

  #receive(frame: Buffer): void {
    if (frame.length < 14 || !frame.subarray(6, 12).equals(this.#guestMac)) return
    const requested = readArpRequest(frame)
    if (requested !== null) {
      if (requested !== guestAddress) this.#frames.send(arpReply(frame, ownMac))
      return
    }
    const packet = readIpv4(frame)
    if (packet?.source !== guestAddress) return
    if (packet.protocol === protocols.tcp) this.#receiveTcp(packet)
    if (packet.protocol === protocols.udp) this.#receiveUdp(packet)
  }

  #receiveTcp(packet: Ipv4Packet): void {
    const segment = readTcp(packet)
    if (!segment) return
    const key = keyOf(packet.destination, segment.destinationPort, segment.sourcePort)
    const connection = this.#connections.get(key)
    const isFirst = (segment.flags & (tcpFlags.syn | tcpFlags.ack | tcpFlags.rst)) === tcpFlags.syn
    if (connection) connection.receive(segment)
    else if (isFirst) this.#begin(key, packet.destination, segment)
    // A bare acknowledgement is ignored, because it belongs to a connection that has ended normally.
    else if (segment.payload.length > 0 && !(segment.flags & tcpFlags.rst))
      this.#refuse(packet.destination, segment)
  }

  #begin(key: string, destination: number, syn: TcpSegment): void {
    if (this.#dialling.has(key)) return
    const remote = this.#outbound.dial(numberToAddress(destination), syn.destinationPort, syn.sourcePort)
    if (!remote) {
      this.#refuse(destination, syn)
      return
    }
    this.#dialling.set(key, remote)
    remote.on('error', () => {})
    const giveUp = () => {
      if (this.#dialling.delete(key)) this.#refuse(destination, syn)
    }
    remote.once('close', giveUp)
    remote.once('connect', () => {
      remote.off('close', giveUp)
      this.#dialling.delete(key)
      const send = (segment: Outgoing) =>
        this.#send(destination, {
          ...{ sourcePort: syn.destinationPort, destinationPort: syn.sourcePort },
          ...segment,
        })
      const guest = TcpConnection.fromGuest(syn, send, () => this.#connections.delete(key))
      this.#connections.set(key, guest)
      join(guest, remote)
    })
  }

  #receiveUdp(packet: Ipv4Packet): void {
    const datagram = readUdp(packet)
    if (!datagram) return
    const { sourcePort, destinationPort } = datagram
    this.#outbound.datagram(numberToAddress(packet.destination), datagram, (payload) => {
      const back = { sourcePort: destinationPort, destinationPort: sourcePort, payload }
      this.#frames.send(udpFrame(this.#addresses(packet.destination), back))
    })
  }

  #refuse(source: number, { sourcePort, destinationPort, sequence, payload, flags }: TcpSegment): void {
    const length = payload.length + (flags & tcpFlags.syn ? 1 : 0)
    this.#send(source, {
      ...{ sourcePort: destinationPort, destinationPort: sourcePort },
      ...{ sequence: 0, acknowledgement: (sequence + length) >>> 0, flags: tcpFlags.rst | tcpFlags.ack },
      ...{ window: 0, payload: Buffer.alloc(0) },
    })
  }

  #send(source: number, segment: Outgoing & { sourcePort: number; destinationPort: number }): void {
    this.#frames.send(tcpFrame(this.#addresses(source), segment, segment.options))
  }

  #addresses(source: number): Addresses {
    return {
      ...{ sourceMac: ownMac, destinationMac: this.#guestMac },
      ...{ source, destination: guestAddress },
    }
  }

  #flush(): void {
    for (const connection of this.#connections.values()) connection.flush()
  }

  #dropAll(): void {
    for (const connection of this.#connections.values()) connection.destroy()
    for (const remote of this.#dialling.values()) remote.destroy()
  }

  #freePort(guestPort: number): number {
    for (let tries = firstPort; tries <= lastPort; tries++) {
      const port = this.#nextPort
      this.#nextPort = port === lastPort ? firstPort : port + 1
      if (!this.#connections.has(keyOf(hostAddress, port, guestPort))) return port
    }
    throw new Error('all local ports for connections to the guest are in use')
  }
}

/**
 * Pipes data in both directions. If one connection breaks, the other is closed; after a normal end, each
 * connection finishes on its own.
 */
export function join(guest: TcpConnection, remote: Duplex): void {
  guest.pipe(remote)
  remote.pipe(guest)
  guest.on('close', () => remote.destroy())
  remote.on('close', () => {
    if (!remote.readableEnded || !remote.writableFinished) guest.destroy()
  })
}

function keyOf(address: number, port: number, guestPort: number): string {
  return `${address}:${port}:${guestPort}`
}
