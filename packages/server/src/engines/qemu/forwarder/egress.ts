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

/** Limits per guest, so that one guest cannot exhaust the forwarder. */
const maxConnections = 512
const maxFlows = 256
const connectLimitMs = 20_000
const flowIdleMs = 60_000
const dnsPort = 53

interface Route {
  protocol: Protocol
  destination: string
  port: number
  guestPort: number
  /** The address that the forwarder connects to. */
  target: string
}

interface Flow {
  route: Route
  socket: UdpSocket
  idle: NodeJS.Timeout
}

const isPublic = addressGuard([])

/**
 * A guest may reach public addresses and the ranges that the operator lists. Private, link-local and loopback
 * addresses are not allowed, because they may lead to the host's networks or to a cloud's metadata service.
 * The host's own addresses are not allowed either.
 */
export function mayReach(address: string, allow: string[]): boolean {
  if (allow.some((range) => cidrContains(range, address))) return true
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return isPublic(address) && !own.some((mine) => mine.address === address)
}

/** One guest's outgoing connections. */
export class Egress implements Outbound {
  /** Ranges that are allowed in addition to public addresses; null if the guest may not connect to anything. */
  #allow: string[] | null = null
  #rules: CompiledRule[] = []
  readonly #connections = new Map<Socket, Route>()
  readonly #flows = new Map<string, Flow>()

  /** Sets what the guest may reach, and closes connections that are no longer allowed. */
  update(allow: string[] | null, rules: CompiledRule[]): void {
    this.#allow = allow
    this.#rules = rules
    for (const [socket, route] of this.#connections) if (!this.#isAllowed(route)) socket.destroy()
    for (const [key, { route }] of this.#flows) if (!this.#isAllowed(route)) this.#endFlow(key)
  }

  dial(destination: string, port: number, guestPort: number): Socket | null {
    const route = this.#route('tcp', destination, port, guestPort)
    if (!route || this.#connections.size >= maxConnections) return null
    const socket = connect({ host: route.target, port, allowHalfOpen: true, noDelay: true })
    this.#connections.set(socket, route)
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
    flow.socket.send(payload, destinationPort, flow.route.target, () => {})
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
    const route = this.#route('udp', destination, destinationPort, sourcePort)
    if (!route || this.#flows.size >= maxFlows) return null
    const socket = createSocket('udp4')
    socket.on('error', () => this.#endFlow(key))
    // Accepts datagrams only from the guest's destination.
    socket.on('message', (payload, from) => {
      if (from.address === route.target && from.port === destinationPort) reply(payload)
    })
    const flow = { route, socket, idle: setTimeout(() => this.#endFlow(key), flowIdleMs) }
    this.#flows.set(key, flow)
    return flow
  }

  #endFlow(key: string): void {
    const flow = this.#flows.get(key)
    if (!flow || !this.#flows.delete(key)) return
    clearTimeout(flow.idle)
    flow.socket.close()
  }

  #route(protocol: Protocol, destination: string, port: number, guestPort: number): Route | null {
    const target = targetOf(destination, port)
    const route = target && { protocol, destination, port, guestPort, target }
    return route && this.#isAllowed(route) ? route : null
  }

  #isAllowed({ protocol, destination, port, guestPort, target }: Route): boolean {
    if (this.#allow === null) return false
    if (destination === accessNetwork.dns) return true
    const packet = { protocol, peer: destination, sourcePort: guestPort, destinationPort: port }
    return (
      mayReach(target, this.#allow) && decidePacket(this.#rules, { direction: 'egress', ...packet }).allowed
    )
  }
}

/**
 * Maps the access network's DNS address to the host's resolver, and its gateway to the host's loopback
 * address.
 */
function targetOf(destination: string, port: number): string | null {
  if (destination === accessNetwork.host) return '127.0.0.1'
  if (destination !== accessNetwork.dns) return destination
  return port === dnsPort ? (getServers().find((server) => isIPv4(server)) ?? null) : null
}
