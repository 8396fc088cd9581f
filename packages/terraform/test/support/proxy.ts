import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A response of the proxy instead of the service's, or the loss of the service's response. */
type Fault = { status: number; body: object } | 'lose the response' | undefined

export interface FaultyProxy {
  url: string
  fault: (method: string, path: string) => Fault
  close(): Promise<void>
}

/** Starts a proxy that forwards requests to a service, and applies the fault that `fault` returns. */
export async function startProxy(target: string): Promise<FaultyProxy> {
  const server = createServer((incoming, outgoing) => {
    const fault = proxy.fault(incoming.method!, incoming.url!)
    if (typeof fault === 'object') {
      outgoing.writeHead(fault.status, { 'content-type': 'application/json' }).end(JSON.stringify(fault.body))
      return
    }
    const forwarded = request(
      `${target}${incoming.url}`,
      { method: incoming.method!, headers: incoming.headers },
      (response: IncomingMessage) => {
        if (fault === 'lose the response') {
          response.resume()
          response.once('end', () => outgoing.destroy())
          return
        }
        outgoing.writeHead(response.statusCode!, response.headers)
        response.pipe(outgoing)
      },
    )
    forwarded.once('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fault: () => undefined,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}

export const errorBody = (code: string) => ({
  code,
  message: `An error of the test: ${code}.`,
  request_id: 'test',
})
