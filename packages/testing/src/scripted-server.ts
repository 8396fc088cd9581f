import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface SeenRequest {
  method: string
  path: string
  headers: Record<string, string | string[] | undefined>
  body: string
}

type Reply = (response: ServerResponse, request: SeenRequest) => void

export const answer =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

export const failure = (status: number, code: string, headers: Record<string, string> = {}): Reply =>
  answer(status, { code, message: `it is ${code}`, request_id: 'request-1' }, headers)

/** Breaks the connection before a response. */
export const hangUp: Reply = (response) => response.destroy()

/** Breaks the connection in the middle of a response. */
export const breakOff: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
  response.write('{"items": [')
  setImmediate(() => response.destroy())
}

/** Sends nothing until the client gives up. */
export const silence: Reply = () => {}

/** Starts a server that misbehaves according to a script: one reply per request, and the last one repeats. */
export async function scriptedServer(...replies: Reply[]) {
  const requests: SeenRequest[] = []
  const server = createServer(async (request, response) => {
    const seen = await read(request)
    // The client has closed the connection, so no response can be sent.
    if (!seen) return
    const reply = replies[Math.min(requests.length, replies.length - 1)]!
    requests.push(seen)
    reply(response, seen)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function read(request: IncomingMessage): Promise<SeenRequest | undefined> {
  const body = await wholeBody(request)
  const { method = '', url: path = '', headers } = request
  return body === undefined ? undefined : { method, path, headers, body }
}

/** Returns undefined if the sender disconnected early. */
export async function wholeBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return undefined
  }
  return Buffer.concat(chunks).toString()
}
