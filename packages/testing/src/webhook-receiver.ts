import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Event } from '@slipway/contract'
import { Webhook } from 'standardwebhooks'
import { onTestFinished } from 'vitest'
import { wholeBody } from './scripted-server.ts'

interface Received {
  path: string
  headers: IncomingHttpHeaders
  text: string
  body: { type: string; timestamp: string; data: Event }
}

export interface Receiver {
  url: string
  received: Received[]
  /** Returns the status of the response; 204 by default. */
  answer: (received: Received) => number | Promise<number>
  /** The body of the responses; empty by default. */
  responseBody: string | Buffer
  close(): Promise<void>
}

/** Starts a server that receives webhook deliveries. */
export async function startReceiver(): Promise<Receiver> {
  const server = createServer(async (request, response) => {
    const text = await wholeBody(request)
    // The sender was killed during the delivery, and will send it again.
    if (text === undefined) return
    const received = { path: request.url!, headers: request.headers, text, body: JSON.parse(text) }
    receiver.received.push(received)
    const status = await receiver.answer(received)
    response.writeHead(status, { location: `${receiver.url}/elsewhere` }).end(receiver.responseBody)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: [],
    answer: () => 204,
    responseBody: '',
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  onTestFinished(() => receiver.close())
  return receiver
}

/** Throws unless the delivery is signed with the secret. */
export const verify = (secret: string, { text, headers }: Received): unknown =>
  new Webhook(secret).verify(text, headers as Record<string, string>)
