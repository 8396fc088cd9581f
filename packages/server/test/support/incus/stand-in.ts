import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { wholeBody } from '@slipway/testing/scripted-server.ts'

export interface ReceivedRequest {
  method: string
  path: string
  query: URLSearchParams
  body: unknown
}

/**
 * The response for a path, or a function that returns it. Undefined is sent as 404, an error as 500, and a
 * buffer as it is.
 */
export type Recorded = unknown | ((asked: ReceivedRequest) => unknown)

/** The response to a request that starts a background operation: the path of the operation. */
interface AsyncOperation {
  operation: string
}
const isAsync = (metadata: unknown): metadata is AsyncOperation =>
  typeof metadata === 'object' && metadata !== null && 'operation' in metadata
const asyncPath = (metadata: unknown) => (isAsync(metadata) ? { operation: metadata.operation } : {})

/**
 * Responds like the REST API of Incus, from recorded responses: for clusters larger than a test machine, missing
 * hardware, and members that misbehave.
 */
export class IncusStandIn {
  readonly recorded = new Map<string, Recorded>()
  readonly asked: ReceivedRequest[] = []
  url = ''
  readonly #server: ReturnType<typeof createServer>
  readonly #listeners = new Set<Duplex>()
  readonly #sockets = new Set<Socket>()

  constructor(tls?: { cert: string; key: string; ca: string }) {
    const handle = (request: IncomingMessage, response: ServerResponse) =>
      void this.#answer(request, response)
    this.#server = tls
      ? createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: true }, handle)
      : createServer(handle)
    this.#server.on('connection', (socket: Socket) => this.#sockets.add(socket))
    this.#server.on('upgrade', (request, socket: Duplex) => this.#listen(request, socket))
    this.recorded.set('/1.0', {
      config: {},
      environment: {
        ...{ server_clustered: true, server_name: 'm1' },
        ...{ server_version: '6.0.4', kernel_version: '6.12' },
      },
    })
  }

  async open(path?: string): Promise<this> {
    this.#server.listen(path ? { path } : { port: 0, host: '127.0.0.1' })
    await once(this.#server, 'listening')
    if (!path) this.url = `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  get listenerCount(): number {
    return this.#listeners.size
  }

  /** Sends an event to all listeners. */
  tell(event: unknown): void {
    const text = Buffer.from(JSON.stringify(event))
    const head = text.length < 126 ? [0x81, text.length] : [0x81, 126, text.length >> 8, text.length & 0xff]
    for (const socket of this.#listeners) socket.write(Buffer.concat([Buffer.from(head), text]))
  }

  /** Closes the connections of all listeners. */
  hangUp(): void {
    for (const socket of this.#listeners) socket.destroy()
    this.#listeners.clear()
  }

  async close(): Promise<void> {
    this.hangUp()
    for (const socket of this.#sockets) socket.destroy()
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://incus')
    const text = await wholeBody(request)
    if (text === undefined) return
    const asked = {
      ...{ method: request.method ?? '', path: pathname, query: searchParams },
      body: text === '' ? undefined : JSON.parse(text),
    }
    this.asked.push(asked)
    const found = this.recorded.get(`${asked.method} ${pathname}`) ?? this.recorded.get(pathname)
    const metadata = typeof found === 'function' ? await found(asked) : found
    if (Buffer.isBuffer(metadata)) {
      response.end(metadata)
      return
    }
    const error = metadata === undefined ? 'not found' : metadata instanceof Error ? metadata.message : null
    const code = metadata === undefined ? 404 : 500
    response.writeHead(error === null ? 200 : code, { 'content-type': 'application/json', etag: 'recorded' })
    response.end(
      JSON.stringify(
        error === null
          ? { type: isAsync(metadata) ? 'async' : 'sync', status_code: 200, metadata, ...asyncPath(metadata) }
          : { type: 'error', error_code: code, error, metadata: null },
      ),
    )
  }

  #listen(request: IncomingMessage, socket: Duplex): void {
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    socket.on('error', () => {})
    // Confirms a close frame.
    socket.on('data', (frame: Buffer) => (frame[0]! & 0x0f) === 8 && socket.end(Buffer.from([0x88, 0])))
    socket.on('close', () => this.#listeners.delete(socket))
    this.#listeners.add(socket)
  }
}
