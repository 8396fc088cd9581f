import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { createDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { Launcher, readyLine, serverProgram } from '@slipway/testing/launcher.ts'
import { useService } from '@slipway/testing/service.ts'
import { expect, onTestFinished, test } from 'vitest'

/**
 * Opens a connection from a loopback address. Resolves when the server has responded to a request or closed the
 * connection.
 */
async function openIdle(url: string, localAddress: string): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), localAddress })
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
  await Promise.race([once(socket, 'data'), once(socket, 'close')]).catch(() => {})
  return socket
}

const openMany = (url: string, localAddress: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => openIdle(url, localAddress)))

interface Reply {
  status: number | undefined
  headers: Record<string, unknown>
}

/**
 * Sends one request on a new connection from a loopback address. The status is missing if the server closed the
 * connection.
 */
const ask = (url: string, path: string, localAddress: string): Promise<Reply> =>
  new Promise((resolve) => {
    const agent = new Agent({ keepAlive: false })
    const request = get(`${url}${path}`, { agent, localAddress, family: 4 }, (response) => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers }))
    })
    request.on('error', () => resolve({ status: undefined, headers: {} }))
  })

test('connections per address are limited, and above the limit only health checks are served', async () => {
  const service = await useService((config) => {
    config.limits.connectionsPerAddress = 5
    config.server.trustedProxies = ['127.0.0.9']
  })
  const { url } = service
  const [first] = await openMany(url, '127.0.0.2', 5)
  const refused = await ask(url, '/v0.1', '127.0.0.2')
  expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '1', connection: 'close' } })
  expect((await ask(url, '/healthz', '127.0.0.2')).status).toBe(200)
  expect((await ask(url, '/v0.1', '127.0.0.3')).status).toBe(401)
  first!.destroy()
  await eventually(async () => (await ask(url, '/v0.1', '127.0.0.2')).status === 401)
  // Far above the limit the server does not respond at all.
  await openMany(url, '127.0.0.4', 5)
  const idle = Array.from({ length: 16 }, () =>
    connect({ host: '127.0.0.1', port: Number(new URL(url).port), localAddress: '127.0.0.4' }),
  )
  onTestFinished(() => idle.forEach((socket) => void socket.destroy()))
  await Promise.all(idle.map((socket) => once(socket, 'connect')))
  await eventually(async () => (await ask(url, '/healthz', '127.0.0.4')).status === undefined)
  // All clients of a proxy share its address.
  await openMany(url, '127.0.0.9', 30)
  expect((await ask(url, '/v0.1', '127.0.0.9')).status).toBe(401)
})

test('idle connections do not exhaust the file descriptors of the process', async () => {
  const database = await createDatabase()
  const launcher = new Launcher()
  onTestFinished(async () => {
    await launcher.clear()
    await database.drop()
  })
  const flags = ['--port', '0', '--data-dir', launcher.newDataDir()]
  const command = ['-c', 'ulimit -n 200; exec "$@"', 'sh', process.execPath, serverProgram, ...flags]
  const program = launcher.run('sh', command, {
    env: { DATABASE_URL: database.url, SLIPWAY_LOG_LEVEL: 'info' },
  })
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await program.until(readyLine))![0]
  for (let host = 1; host <= 10; host++) await openMany(url, `127.0.1.${host}`, 40)
  expect((await ask(url, '/healthz', '127.0.2.1')).status).toBe(200)
  await eventually(async () => (await ask(url, '/v0.1', '127.0.2.1')).status === 401)
  expect((await ask(url, '/readyz', '127.0.2.1')).status).toBe(200)
})
