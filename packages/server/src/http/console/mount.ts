import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { consoleProtocol } from '@slipway/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type WebSocket, WebSocketServer } from 'ws'
import { Failure } from '../../domain/failure.ts'
import type { ConsoleTicket } from '../../store/compute/consoles.ts'
import { emit } from '../../store/events/events.ts'
import type { HttpServices } from '../context.ts'
import { isOwnOrigin } from '../host-names.ts'
import type { RateLimiter } from '../limits/rate-limit.ts'
import { type AdmittedSession, abandon, admit, grantOf } from './admission.ts'
import { ConsoleSession } from './session.ts'

export const consolePath = '/v0.1/console'
const maxInputBytes = 64 * 1024
const tickMs = 1_000
/** Credentials are checked after every revocation; this interval covers a lost signal. */
const recheckMs = 5_000

interface Upgrade {
  socket: Socket
  head: Buffer
}

interface OpenConsole {
  session: ConsoleSession
  ticket: ConsoleTicket
  address: string
  checkedAtMs: number
}

/**
 * Mounts the WebSockets of serial consoles. A WebSocket request passes the same hooks as any other request;
 * then the ticket in its path authorizes it, because browsers cannot send a bearer token with a WebSocket
 * request.
 */
export function mountConsoles(app: FastifyInstance, services: HttpServices, limiter: RateLimiter): void {
  const upgrades = routeUpgrades(app)
  const open = new Set<OpenConsole>()
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: maxInputBytes,
    perMessageDeflate: false,
    handleProtocols: () => consoleProtocol,
  })
  app.get(`${consolePath}/:ticket`, { exposeHeadRoute: false }, async (request, reply) => {
    limiter.takeAddress(request.ip, reply)
    const upgrade = upgrades.get(request.raw)
    if (!upgrade || !wantsConsole(request))
      throw new Failure(
        'invalid_argument',
        `Open this URL as a WebSocket with the protocol ${consoleProtocol}.`,
      )
    if (request.headers.origin !== undefined && !isOwnOrigin(request, services))
      throw new Failure(
        'permission_denied',
        'Web pages from other origins cannot open a serial console. Open it in this service’s web console.',
      )
    const admitted = await admit(services, request)
    reply.hijack()
    const { socket, head } = upgrade
    reply.raw.detachSocket(socket)
    let isOpened = false
    const leave = () => {
      admitted.release()
      if (!isOpened) void abandon(services, admitted)
    }
    // The client may have disconnected in the meantime, or the handshake may fail.
    if (socket.destroyed) return leave()
    socket.once('close', leave)
    sockets.handleUpgrade(request.raw, socket, head, (client) => {
      isOpened = true
      open.add(begin(services, request, admitted, client, open))
    })
  })
  keepChecking(app, services, open)
}

/** Sends upgrade requests through the same hooks and handlers as other requests. */
function routeUpgrades(app: FastifyInstance): WeakMap<IncomingMessage, Upgrade> {
  const upgrades = new WeakMap<IncomingMessage, Upgrade>()
  app.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => {})
    // Node does not read the body of an upgrade request.
    if (request.method !== 'GET') {
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
      return
    }
    upgrades.set(request, { socket, head })
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.on('finish', () => socket.end())
    app.routing(request, response)
  })
  return upgrades
}

/** Begins the session of an open WebSocket. When the session ends, it is removed from `open`. */
function begin(
  services: HttpServices,
  request: FastifyRequest,
  admitted: AdmittedSession,
  client: WebSocket,
  open: Set<OpenConsole>,
): OpenConsole {
  const { ticket, vm, console } = admitted
  const entry: OpenConsole = {
    session: new ConsoleSession(client, {
      ...{ services, vm, sessionId: ticket.session_id, console },
      onEnd({ input, output }) {
        open.delete(entry)
        const bytes = { input_bytes: input, output_bytes: output }
        announce(services, request, admitted, 'vm.console_closed', bytes)
      },
    }),
    ticket,
    address: request.ip,
    checkedAtMs: performance.now(),
  }
  announce(services, request, admitted, 'vm.console_opened', {})
  return entry
}

/** Ends sessions that have lost their VM, write lock or credential. */
function keepChecking(app: FastifyInstance, services: HttpServices, open: Set<OpenConsole>): void {
  const checkAll = (vmIds?: string[]) => {
    for (const { session } of open)
      if (!vmIds || vmIds.includes(session.vmId)) session.check().catch(() => {})
  }
  const recheck = (olderThanMs: number) => {
    const now = performance.now()
    for (const entry of open) {
      if (now - entry.checkedAtMs < olderThanMs) continue
      entry.checkedAtMs = now
      grantOf(services, entry.ticket, entry.address).catch((error) => {
        if (error instanceof Failure) entry.session.close('revoked')
      })
    }
  }
  const timer = setInterval(() => {
    checkAll()
    recheck(recheckMs)
  }, tickMs)
  timer.unref()
  const unsubscribe = [
    services.signals.on('console', (vmIds) => checkAll(vmIds)),
    services.signals.on('access', () => recheck(0)),
  ]
  app.addHook('preClose', async () => {
    clearInterval(timer)
    for (const end of unsubscribe) end()
    for (const { session } of open) session.shutDown()
  })
}

const wantsConsole = ({ headers }: FastifyRequest) =>
  String(headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .some((name) => name.trim() === consoleProtocol)

type ConsoleEvent = 'vm.console_opened' | 'vm.console_closed'

/** Writes the event of a session. A failure to write it does not affect the session. */
function announce(
  { database, log }: HttpServices,
  request: FastifyRequest,
  { ticket, vm, caller, organizationId }: AdmittedSession,
  type: ConsoleEvent,
  more: object,
): void {
  const event = {
    ...{ actor: caller.key, requestId: request.id, clientAddress: request.ip ?? '' },
    ...{ projectId: ticket.project_id, organizationId },
    data: { name: vm.name, labels: vm.labels, session_id: ticket.session_id, mode: ticket.mode, ...more },
  }
  database
    .transaction((tx) => emit(tx, { ...event, type, resourceType: 'vm', resourceId: vm.id }))
    .catch((error) => log.error({ err: error }, 'console event not written'))
}
