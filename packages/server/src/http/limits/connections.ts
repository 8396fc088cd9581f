import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { blockListOf, isInBlockList } from '../../domain/address-blocks.ts'
import { clientOf } from '../../domain/client-address.ts'
import { Failure } from '../../domain/failure.ts'

const keepAliveMs = 72_000
const scarceKeepAliveMs = 1_000
/** Above this fraction of the maximum, connections are scarce. */
const scarceFraction = 3 / 4
/** How many connections above the limit of an address get a response before they are closed. */
const maxRefusedPerAddress = 16
const healthPaths = new Set(['/healthz', '/readyz', '/metrics'])

interface Limits {
  connectionsPerAddress: number
  trustedProxies: string[]
}

/**
 * Limits how many connections each client address has, and how many the process has in total (half of its file
 * descriptors). A connection above a limit can only be used for health checks until the count falls below the
 * limit.
 */
export function limitConnections(
  app: FastifyInstance,
  limits: Limits,
  descriptors = descriptorLimit(),
): void {
  const connections = new Connections(app.server as Server, limits, descriptors)
  app.addHook('onRequest', (request, reply, done) => {
    connections.check(request, reply)
    done()
  })
}

class Connections {
  readonly #server: Server
  readonly #maxPerAddress: number
  readonly #proxies: ReturnType<typeof blockListOf>
  readonly #max: number
  readonly #reserve: number
  readonly #byAddress = new Map<string, number>()
  /** The connections that were above a limit when they were opened. */
  readonly #above = new Set<string>()
  #open = 0

  constructor(server: Server, { connectionsPerAddress, trustedProxies }: Limits, descriptors: number) {
    this.#server = server
    this.#maxPerAddress = connectionsPerAddress
    this.#proxies = blockListOf(trustedProxies)
    // The other half is for the database, engines, webhooks and files.
    this.#max = Math.floor(descriptors / 2)
    this.#reserve = Math.min(32, Math.floor(descriptors / 8))
    server.keepAliveTimeout = keepAliveMs
    server.on('connection', (socket) => this.#add(socket))
  }

  /** Throws 429 or 503 for a request on a connection above a limit. */
  check({ raw: { socket }, routeOptions }: FastifyRequest, reply: FastifyReply): void {
    if (this.#above.size === 0 || !this.#above.has(nameOf(socket))) return
    reply.header('connection', 'close')
    if (healthPaths.has(routeOptions.url ?? '')) return
    if (this.#excessOf(socket) > 0)
      throw new Failure(
        'rate_limited',
        `Too many connections from this address. Limit: ${this.#maxPerAddress}. Close some, or try again in 1 s.`,
        { retryAfterSeconds: 1 },
      )
    if (this.#open > this.#max)
      throw new Failure('unavailable', 'The server has too many open connections. Try again.')
  }

  #add(socket: Socket): void {
    const address = clientOf(socket.remoteAddress ?? '')
    const name = nameOf(socket)
    this.#count(address, 1)
    socket.once('close', () => {
      this.#count(address, -1)
      this.#above.delete(name)
    })
    const excess = this.#excessOf(socket)
    const isFull = this.#open > this.#max
    if (isFull) this.#server.closeIdleConnections()
    if (isFull || excess > 0) this.#above.add(name)
    if (excess > maxRefusedPerAddress || this.#open > this.#max + this.#reserve) socket.destroy()
  }

  #count(address: string, change: 1 | -1): void {
    this.#open += change
    const count = (this.#byAddress.get(address) ?? 0) + change
    if (count > 0) this.#byAddress.set(address, count)
    else this.#byAddress.delete(address)
    const isScarce = this.#open > this.#max * scarceFraction
    this.#server.keepAliveTimeout = isScarce ? scarceKeepAliveMs : keepAliveMs
  }

  /**
   * Returns how many connections above its limit the client address has; 0 or less within the limit, 0 for a trusted
   * proxy.
   */
  #excessOf({ remoteAddress = '' }: Socket): number {
    if (isInBlockList(this.#proxies, remoteAddress)) return 0
    return (this.#byAddress.get(clientOf(remoteAddress)) ?? 0) - this.#maxPerAddress
  }
}

/** A connection and the TLS socket on top of it have the same name. */
const nameOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/** Returns how many files this process may open. Node raises the soft limit to the hard limit when it starts. */
function descriptorLimit(): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
    return line ? Number(line[1]) : Number.POSITIVE_INFINITY
  } catch {
    // Only Linux has this file.
    return Number.POSITIVE_INFINITY
  }
}
