import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { validateResponse } from './responses.ts'

const agent = new Agent({ keepAlive: true })

export interface Exchange {
  status: number
  headers: Headers
  text: string
}

/**
 * Sends one request with less CPU time than `fetch`, because some suites send tens of thousands of requests.
 */
export function exchange(
  method: string,
  url: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Exchange> {
  // For some methods, Node does not send the length of a body by default, and the server would not read it.
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers: { ...headers, ...length }, agent }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const received = new Headers()
        for (let at = 0; at < incoming.rawHeaders.length; at += 2)
          received.append(incoming.rawHeaders[at]!, incoming.rawHeaders[at + 1]!)
        const text = Buffer.concat(chunks).toString()
        resolve({ status: incoming.statusCode!, headers: received, text })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

export interface ClientResponse {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: any response, already checked against the document
  body: any
}

interface Request {
  token?: string
  body?: unknown
  headers?: Record<string, string>
}

/** Calls a server by path, without credentials unless a token is given. */
export async function send(
  server: { url: string },
  method: string,
  path: string,
  { token, body, headers = {} }: Request = {},
): Promise<ClientResponse> {
  const allHeaders = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  }
  const content = body === undefined ? undefined : JSON.stringify(body)
  const response = await exchange(method, `${server.url}/v0.1${path}`, allHeaders, content)
  const parsed = JSON.parse(response.text)
  validateResponse(method, `/v0.1${path}`, response.status, 'application/json', parsed)
  return { status: response.status, headers: response.headers, body: parsed }
}

/**
 * Repeats the request until the response is 401. Fails if a request that is sent more than a second after the
 * revocation still succeeds.
 */
export async function refusedWithinASecond(revokedAt: number, ask: () => Promise<number>): Promise<void> {
  for (;;) {
    const isLate = performance.now() - revokedAt > 1_000
    if ((await ask()) === 401) return
    if (isLate) throw new Error('a credential still works a second after its revocation')
  }
}

export interface RawResponse {
  /** 0 if the server closed the connection without a response. */
  status: number
  headers: Headers
  text: string
}

/**
 * Sends raw bytes, and returns the received data once the server has closed the connection. The client never
 * closes it.
 */
export function sendRaw(url: string, bytes: string | Buffer): Promise<RawResponse> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    const chunks: Buffer[] = []
    socket.on('connect', () => socket.write(bytes))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    const finish = () => {
      socket.destroy()
      resolve(parse(Buffer.concat(chunks).toString('latin1')))
    }
    socket.on('end', finish)
    socket.on('close', finish)
  })
}

function parse(received: string): RawResponse {
  const [head = '', text = ''] = received.split('\r\n\r\n', 2)
  const [first = '', ...lines] = head.split('\r\n')
  const headers = new Headers()
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  return { status: Number(first.split(' ')[1] ?? 0), headers, text }
}
