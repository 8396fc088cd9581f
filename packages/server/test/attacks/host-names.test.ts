import { once } from 'node:events'
import { connect } from 'node:net'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

let service: TestService
beforeAll(async () => {
  service = await startService((config) => {
    config.server.publicUrl = 'https://cloud.example.com'
    config.server.allowedHosts = ['api.internal']
  })
})
afterAll(() => service?.close())

/** Sends a request with exactly these header lines, which `fetch` would not allow, and returns the whole response. */
async function send(line: string, ...headers: string[]): Promise<string> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1').setEncoding('utf8')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.write([`${line} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n'))
  await once(socket, 'close')
  return text
}

test.each([
  '127.0.0.1:8080',
  '[::1]:8080',
  'localhost',
  'node1.localhost:8080',
  'slipway:8080',
  'cloud.example.com',
  'CLOUD.example.com.:443',
  'api.internal',
])('a request for the host name %s is served', async (host) => {
  expect(await send('GET /healthz', `Host: ${host}`)).toContain('HTTP/1.1 200')
})

test.each(['/healthz', '/metrics', '/', '/organizations', '/nothing'])(
  'a request to %s under another site’s host name is refused (DNS rebinding)',
  async (path) => {
    for (const host of [
      'evil.example',
      'evil.example:8080',
      'cloud.example.com.evil.example',
      '127.0.0.1.evil.example',
    ]) {
      const response = await send(`GET ${path}`, `Host: ${host}`)
      expect(response, host).toContain('HTTP/1.1 403')
      expect(response, host).toContain('Unknown host name')
    }
  },
)

test('a request with two Host headers is refused', async () => {
  expect(await send('GET /healthz', 'Host: localhost', 'host: evil.example')).toContain('HTTP/1.1 400')
  expect(await send('GET /healthz', 'Host: localhost', 'Host: localhost')).toContain('HTTP/1.1 400')
})

test('a billing form is accepted only from pages of this service, even without Sec-Fetch-Site', async () => {
  const post = (...headers: string[]) =>
    send('POST /billing/unknown/card', 'Host: localhost', 'Content-Length: 0', ...headers)
  for (const headers of [['Origin: https://evil.example'], ['Origin: null'], ['Sec-Fetch-Site: cross-site']])
    expect(await post(...headers), headers[0]).toContain('sent from another site')
  for (const headers of [[], ['Origin: http://localhost'], ['Origin: https://cloud.example.com']])
    expect(await post(...headers), headers[0]).toContain('HTTP/1.1 404')
})
