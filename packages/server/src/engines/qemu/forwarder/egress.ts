import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { getServers } from 'node:dns'
import { connect, isIPv4, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { cidrContains } from '@slipway/contract'
import { type CompiledRule, decidePacket, type Protocol } from '../../../domain/firewall.ts'
import { addressGuard } from '../../../domain/public-address.ts'
import { accessNetwork } from '../process/access-network.ts'
import type { Outbound } from './guest-link.ts'
import type { UdpDatagram } from './packets.ts'

/** One guest must not use up what the forwarder has for all. */
const maxConnections = 512
const maxFlows = 256
const connectLimitMs = 20_000
const flowIdleMs = 60_000
const dnsPort = 53

interface Way {
  protocol: Protocol
  destination: string
  port: number
  guestPort: number
  /** Where it really goes. */
  target: string
}

interface Flow {
  way: Way
  socket: UdpSocket
  idle: NodeJS.Timeout
}

const isPublic = addressGuard([])

/**
 * Where a guest may go: to public addresses, and to what the operator listed. Private, link-local and loopback ranges
 * are the networks of the host (the metadata services of clouds among them), and so are the host's own addresses.
 */
export function mayReach(address: string, allow: string[]): boolean {
  if (allow.some((range) => cidrContains(range, address))) return true
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return isPublic(address) && !own.some((mine) => mine.address === address)
}

/** The way out of one guest. */
export class Egress implements Outbound {
  /** Ranges beside the public ones; null where guests reach nothing. */
  #allow: string[] | null = null
  #rules: CompiledRule[] = []
  readonly #connections = new Map<Socket, Way>()
  readonly #flows = new Map<string, Flow>()

  /** Cuts what is no longer allowed. */
  update(allow: string[] | null, rules: CompiledRule[]): void {
    this.#allow = allow
    this.#rules = rules
    for (const [socket, way] of this.#connections) if (!this.#isAllowed(way)) socket.destroy()
    for (const [key, { way }] of this.#flows) if (!this.#isAllowed(way)) this.#endFlow(key)
  }

  dial(destination: string, port: number, guestPort: number): Socket | null {
    const way = this.#way('tcp', destination, port, guestPort)
    if (!way || this.#connections.size >= maxConnections) return null
    const socket = connect({ host: way.target, port, allowHalfOpen: true, noDelay: true })
    this.#connections.set(socket, way)
    const timer = setTimeout(() => socket.destroy(), connectLimitMs)
    socket.once('connect', () => clearTimeout(timer))
    socket.once('close', () => {
      clearTimeout(timer)
      this.#connections.delete(socket)
    })
    return socket
  }

  datagram(destination: string, datagram: UdpDatagram, reply: (payload: Buffer) => void): void {
    const { sourcePort, destinationPort, payload } = datagram
    const key = `${sourcePort} ${destination} ${destinationPort}`
    const flow = this.#flows.get(key) ?? this.#beginFlow(key, destination, datagram, reply)
    if (!flow) return
    flow.idle.refresh()
    flow.socket.send(payload, destinationPort, flow.way.target, () => {})
  }

  close(): void {
    this.update(null, [])
  }

  #beginFlow(
    key: string,
    destination: string,
    { sourcePort, destinationPort }: UdpDatagram,
    reply: (payload: Buffer) => void,
  ): Flow | null {
    const way = this.#way('udp', destination, destinationPort, sourcePort)
    if (!way || this.#flows.size >= maxFlows) return null
    const socket = createSocket('udp4')
    socket.on('error', () => this.#endFlow(key))
    // Only whom the guest wrote to may answer.
    socket.on('message', (answer, from) => {
      if (from.address === way.target && from.port === destinationPort) reply(answer)
    })
    const flow = { way, socket, idle: setTimeout(() => this.#endFlow(key), flowIdleMs) }
    this.#flows.set(key, flow)
    return flow
  }

  #endFlow(key: string): void {
    const flow = this.#flows.get(key)
    if (!flow || !this.#flows.delete(key)) return
    clearTimeout(flow.idle)
    flow.socket.close()
  }

  #way(protocol: Protocol, destination: string, port: number, guestPort: number): Way | null {
    const target = targetOf(destination, port)
    const way = target && { protocol, destination, port, guestPort, target }
    return way && this.#isAllowed(way) ? way : null
  }

  #isAllowed({ protocol, destination, port, guestPort, target }: Way): boolean {
    if (this.#allow === null) return false
    if (destination === accessNetwork.dns) return true
    const packet = { protocol, peer: destination, sourcePort: guestPort, destinationPort: port }
    return (
      mayReach(target, this.#allow) && decidePacket(this.#rules, { direction: 'egress', ...packet }).allowed
    )
  }
}

/** The access network has a resolver, which is the host's, and its gateway stands for the host's loopback address. */
function targetOf(destination: string, port: number): string | null {
  if (destination === accessNetwork.host) return '127.0.0.1'
  if (destination !== accessNetwork.dns) return destination
  return port === dnsPort ? (getServers().find((server) => isIPv4(server)) ?? null) : null
}
