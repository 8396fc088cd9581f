import { request } from 'node:http'
import type { Event } from '@slipway/contract'
import { onTestFinished } from 'vitest'

export interface StreamClient {
  events: Event[]
  ids: string[]
  /** The number of frames that are not events: comments, and the frame with the starting position. */
  comments: number
  /** Returns the next matching event after those that were already returned or skipped. */
  next(fits?: (event: Event) => boolean): Promise<Event>
  closed: Promise<void>
  isClosed: boolean
  close(): void
}

interface Options {
  token: string
  lastEventId?: string | number
  query?: string
  path?: string
}

/** Reads a stream over a separate connection. */
export async function openStream(url: string, projectId: string, options: Options): Promise<StreamClient> {
  const path = options.path ?? `/v0.1/projects/${projectId}/events`
  const outgoing = request(`${url}${path}${options.query ?? ''}`, {
    agent: false,
    headers: {
      Accept: 'text/event-stream',
      Authorization: `Bearer ${options.token}`,
      ...(options.lastEventId !== undefined && { 'Last-Event-ID': String(options.lastEventId) }),
    },
  })
  outgoing.on('error', () => {})
  outgoing.end()
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) =>
    outgoing.on('response', resolve).on('error', reject),
  )
  response.setEncoding('utf8')
  response.on('error', () => {})
  if (response.statusCode !== 200) {
    let body = ''
    for await (const part of response) body += part
    throw new Error(`${response.statusCode} ${body}`)
  }
  if (response.headers['content-type'] !== 'text/event-stream') throw new Error('not an event stream')
  let rest = ''
  let wake = () => {}
  let taken = 0
  const client: StreamClient = {
    events: [],
    ids: [],
    comments: 0,
    isClosed: false,
    closed: new Promise((resolve) =>
      response.on('close', () => {
        client.isClosed = true
        wake()
        resolve()
      }),
    ),
    async next(fits = () => true) {
      for (;;) {
        while (taken < client.events.length) {
          const event = client.events[taken++]!
          if (fits(event)) return event
        }
        if (client.isClosed) throw new Error('the stream is closed')
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    close: () => outgoing.destroy(),
  }
  response.on('data', (text: string) => {
    const frames = (rest + text).split('\n\n')
    rest = frames.pop()!
    for (const frame of frames) {
      if (!frame.includes('\ndata: ')) client.comments++
      else {
        const [id, data] = frame.split('\n') as [string, string]
        client.ids.push(id.replace(/^id: /, ''))
        client.events.push(JSON.parse(data.replace(/^data: /, '')))
      }
    }
    wake()
  })
  onTestFinished(() => client.close())
  return client
}
