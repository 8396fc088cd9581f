import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { eventually } from '@slipway/testing/eventually.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'slipway-tls-'))
const files = { tlsCertFile: join(folder, 'server.crt'), tlsKeyFile: join(folder, 'server.key') }
const fixture = (name: string) => join(import.meta.dirname, '../support/fixtures/tls', name)
const use = (name: 'first' | 'second', ending: 'crt' | 'key') =>
  copyFileSync(fixture(`${name}.${ending}`), join(folder, `server.${ending}`))

let service: TestService
beforeAll(async () => {
  use('first', 'crt')
  use('first', 'key')
  service = await startService()
})
afterAll(async () => {
  await service?.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Returns the certificate's subject and the response, as seen by a client that trusts only this certificate. */
function ask(url: string, trusted: 'first' | 'second'): Promise<string> {
  return new Promise((resolve, reject) => {
    const ca = readFileSync(fixture(`${trusted}.crt`))
    let text = ''
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), ca }, () =>
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'),
    )
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text)).on('error', reject)
  })
}

test('a server with a certificate uses TLS, and loads a renewed certificate without a restart', async () => {
  const server = await service.another((config) => Object.assign(config.server, files))
  expect(server.url).toMatch(/^https:/)
  expect(await ask(server.url, 'first')).toContain('HTTP/1.1 200')
  await expect(ask(server.url, 'second')).rejects.toThrow(/certificate/)

  // The certificate is written before the key, and until then the old pair stays in use.
  use('second', 'crt')
  await eventually(async () =>
    service.logLines.some((line) => line.includes('the previous certificate stays in use')),
  )
  expect(await ask(server.url, 'first')).toContain('HTTP/1.1 200')
  use('second', 'key')
  await eventually(async () => (await ask(server.url, 'second').catch(() => '')).includes('HTTP/1.1 200'))
  await server.close()
})

test('the server exits with a one-sentence error if its certificate cannot be used', async () => {
  writeFileSync(files.tlsCertFile, 'no certificate')
  const start = service.another((config) => Object.assign(config.server, files))
  await expect(start).rejects.toThrow(/tls_cert_file, server.tls_key_file: not usable/)
})

test('the server warns at every start if it listens beyond loopback without TLS or a proxy', async () => {
  const warnings = () => service.logLines.filter((line) => line.includes('without TLS')).length
  expect(warnings()).toBe(0)
  for (const expected of [1, 2]) {
    const open = await service.another((config) => {
      config.server.host = '0.0.0.0'
    })
    await open.close()
    expect(warnings()).toBe(expected)
  }
  const proxied = await service.another((config) => {
    config.server.host = '0.0.0.0'
    config.server.trustedProxies = ['127.0.0.1']
  })
  await proxied.close()
  expect(warnings()).toBe(2)
})
