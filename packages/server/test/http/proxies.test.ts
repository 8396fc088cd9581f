import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { consoleProtocol } from '@slipway/contract'
import { eventually } from '@slipway/testing/eventually.ts'
import { ownerToken } from '@slipway/testing/people.ts'
import { freePort } from '@slipway/testing/port.ts'
import { type Program, startProgram } from '@slipway/testing/program.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { certificate, proxies } from '../support/proxies.ts'

const missing = (process.env.SLIPWAY_MISSING ?? '').split(',')
let service: TestService
let owner: string

beforeAll(async () => {
  service = await startService((config) => {
    config.server.trustedProxies = ['127.0.0.1']
  })
  owner = await ownerToken(service)
})
afterAll(() => service?.close())

for (const { name, binary, configure } of proxies)
  describe.skipIf(missing.includes(name))(`behind the ${name} of docs/operate`, () => {
    const folder = mkdtempSync(join(tmpdir(), `slipway-${name}-`))
    let proxy: Program
    let port: number

    beforeAll(async () => {
      port = await freePort()
      const args = configure({ folder, port, upstream: new URL(service.url).host })
      proxy = startProgram(binary, args, { env: { HOME: folder } })
      await eventually(async () => (await ask('/healthz').catch(() => null))?.status === 200)
    })
    afterAll(async () => {
      await proxy?.end('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    })

    function open(path: string, options: RequestOptions, body = ''): Promise<IncomingMessage> {
      return new Promise((resolve, reject) => {
        const call = request(`https://127.0.0.1:${port}${path}`, {
          agent: false,
          ca: readFileSync(certificate('crt')),
          ...options,
        })
        call.on('response', resolve).on('error', reject).end(body)
      })
    }

    async function ask(path: string, options: RequestOptions = {}, body?: object) {
      const headers = {
        authorization: `Bearer ${owner}`,
        ...(body && { 'content-type': 'application/json' }),
        ...options.headers,
      }
      const response = await open(path, { ...options, headers }, body && JSON.stringify(body))
      let text = ''
      for await (const chunk of response) text += chunk
      return { status: response.statusCode, text }
    }

    const project = () => `/v0.1/projects/${service.credentials.project_id}`
    const newKey = (options: RequestOptions = {}) =>
      ask(`${project()}/access-keys`, { method: 'POST', ...options }, { name: 'by proxy', role: 'read' })

    test('a long poll is held and gets its response when the operation ends', async () => {
      const created = await ask(`${project()}/vms`, { method: 'POST' }, vmBody())
      const { operation } = JSON.parse(created.text)
      const ended = await ask(`${project()}/operations/${operation.operation_id}?wait=60`)
      expect(JSON.parse(ended.text).state).toBe('SUCCEEDED')
    })

    test('an event stream arrives event by event while it stays open', async () => {
      const headers = { authorization: `Bearer ${owner}`, accept: 'text/event-stream' }
      const stream = await open(`${project()}/events`, { headers })
      let text = ''
      stream.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      for (let count = 1; count <= 3; count++) {
        await newKey()
        await eventually(async () => text.split('access_key.created').length > count)
      }
      expect(stream.complete).toBe(false)
      stream.destroy()
    })

    test('a serial console sends and receives, and a ping keeps it open while the guest prints nothing', async () => {
      const created = JSON.parse((await ask(`${project()}/vms`, { method: 'POST' }, vmBody())).text)
      await service.ended(created.operation.operation_id)
      const path = `${project()}/vms/${created.operation.metadata.id}/console`
      const { url } = JSON.parse((await ask(path, { method: 'POST' }, { mode: 'write' })).text)
      const here = `127.0.0.1:${port}`
      const socket = new WebSocket(`wss://${here}${new URL(url).pathname}`, consoleProtocol, {
        ...{ ca: readFileSync(certificate('crt')), origin: `https://${here}` },
      })
      const pinged = once(socket, 'ping')
      let output = ''
      socket.on('message', (data) => {
        output += data
      })
      await once(socket, 'open')
      socket.send(Buffer.from('hello\r'))
      await eventually(() => output.includes('simulated: hello'))
      await pinged
      socket.close()
      await once(socket, 'close')
    })

    test('the client address is the one that the proxy saw, regardless of the headers that the client sends', async () => {
      const headers = { 'x-forwarded-for': '203.0.113.66' }
      const { id } = JSON.parse((await newKey({ localAddress: '127.0.0.77', headers })).text)
      const { items } = await service.ok('eventList', { token: owner, query: { resource_id: id } })
      expect(items[0]!.client_address).toBe('127.0.0.77')
    })

    test('metrics are not published', async () => {
      expect((await ask('/metrics')).status).toBe(404)
      expect((await service.request('GET', '/metrics')).status).toBe(200)
    })

    test('a body over the limit gets the error of the service', async () => {
      const body = { name: 'x'.repeat(1_200_000) }
      // The service responds before it has read the whole body, so a proxy that is still sending may find the
      // connection closed.
      const { status, text } = await eventually(async () => {
        const response = await ask(`${project()}/access-keys`, { method: 'POST' }, body).catch(() => null)
        return response && (response.status ?? 500) < 500 && response
      })
      expect([status, JSON.parse(text).code]).toEqual([413, 'request_too_large'])
    })
  })
