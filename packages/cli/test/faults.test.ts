import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { root as checkout } from '@slipway/testing/root.ts'
import { answer, breakOff, failure, hangUp, scriptedServer } from '@slipway/testing/scripted-server.ts'
import { afterAll, afterEach, expect, test } from 'vitest'
import { version } from '../src/version.ts'
import { freshHome } from './support/cli.ts'

const { slipway, executable, remove } = freshHome()
afterAll(remove)
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const project = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'

async function against(...replies: Parameters<typeof scriptedServer>) {
  const server = await scriptedServer(...replies)
  closers.push(server.close)
  const env = { SLIPWAY_API_URL: server.url, SLIPWAY_ACCESS_KEY: 'key', SLIPWAY_PROJECT: project }
  return {
    server,
    run: (...words: string[]) => slipway(words, { env }),
    runExecutable: (...words: string[]) => executable(words, { env }),
  }
}

const empty = answer(200, { items: [], next_page_token: '' })
const root = (over: object) =>
  answer(200, { name: 'slipway', version, api_version: 'v0.1', caller: {}, ...over })

test('requests are retried after 429, 503 and broken connections until there is a response', async () => {
  const { server, runExecutable } = await against(
    failure(429, 'rate_limited', { 'retry-after': '0' }),
    failure(503, 'unavailable', { 'retry-after': '0' }),
    breakOff,
    empty,
  )
  expect(await runExecutable('vm', 'list', '-o', 'json')).toEqual({ code: 0, stdout: '[]\n', stderr: '' })
  expect(server.requests).toHaveLength(4)
})

test('a server that stays busy is reported as such, with the request id', async () => {
  const { run } = await against(failure(503, 'unavailable', { 'retry-after': '0' }))
  const { code, stdout, stderr } = await run('vm', 'list')
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toBe('slipway: it is unavailable\n  Request id: request-1\n')
})

test('a server that always disconnects, or cannot be reached, is reported with its URL', async () => {
  const { server, run } = await against(hangUp)
  const first = await run('vm', 'list')
  expect(first.code).toBe(1)
  expect(first.stderr).toContain(`Cannot reach ${server.url}`)
  await server.close()
  closers.length = 0
  const second = await run('vm', 'list', '-o', 'json')
  expect(second.code).toBe(1)
  expect(JSON.parse(second.stderr)).toMatchObject({ code: 'connection_failed' })
})

test('a server that is too old for the command is reported as such', async () => {
  const { runExecutable } = await against(failure(404, 'not_found'), root({ version: '0.0.9' }))
  const { code, stderr } = await runExecutable('events')
  expect(code).toBe(3)
  expect(stderr).toContain(`The server runs Slipway 0.0.9, which is older than this CLI (${version})`)
})

test('a server with another API version is reported with that version', async () => {
  const { run } = await against(failure(404, 'not_found'), root({ api_version: 'v0.2' }))
  expect((await run('events')).stderr).toContain('The server uses API v0.2, but this CLI uses v0.1.')
})

test('a missing resource on a current server is reported as not found', async () => {
  const { run } = await against(failure(404, 'not_found'), root({}))
  expect(await run('vm', 'show', project)).toEqual({
    code: 3,
    stdout: '',
    stderr: 'slipway: it is not_found\n',
  })
})

test('a server that is not Slipway is reported as such', async () => {
  const { run } = await against(answer(200, '<html>hello</html>'))
  const { code, stderr } = await run('vm', 'list')
  expect(code).toBe(1)
  expect(stderr).toContain('Check that this is a Slipway server.')
})

test.each([
  [400, 'invalid_argument', 2],
  [401, 'unauthenticated', 5],
  [402, 'payment_method_required', 5],
  [403, 'permission_denied', 5],
  [403, 'quota_exceeded', 5],
  [404, 'not_found', 3],
  [409, 'already_exists', 4],
  [409, 'conflict', 4],
  [409, 'out_of_stock', 4],
])(
  'a command that gets the response %s %s exits with code %s, and prints the error as JSON if requested',
  async (status, code, exitCode) => {
    const { run } = await against(failure(status, code))
    const plain = await run('vm', 'list')
    expect(plain).toMatchObject({ code: exitCode, stdout: '' })
    const forPrograms = await run('vm', 'list', '-o', 'json')
    expect(forPrograms.code).toBe(exitCode)
    expect(JSON.parse(forPrograms.stderr)).toMatchObject({ code, message: `it is ${code}` })
  },
)

test('a conflict with an operation in progress says how to wait for it', async () => {
  const details = { operation_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10' }
  const busy = answer(409, { code: 'conflict', message: 'The VM is busy.', request_id: 'r-1', details })
  const { run } = await against(busy)
  expect((await run('vm', 'list')).stderr).toContain(`slipway operation wait ${details.operation_id}`)
  expect(JSON.parse((await run('vm', 'list', '-o', 'json')).stderr)).toMatchObject({ details })
})

test('a key is sent only to the service it belongs to', async () => {
  const rootReply = root({ caller: { kind: 'access_key', project_id: project } })
  const { server, run: direct } = await against(rootReply, empty, rootReply, empty)
  const login = await slipway(['login', '--api-url', server.url, '--access-key', 'stored-key'])
  expect(login.code).toBe(0)
  expect((await slipway(['vm', 'list'])).code).toBe(0)
  expect(server.requests.at(-1)?.headers.authorization).toBe('Bearer stored-key')
  expect((await direct('vm', 'list')).code).toBe(0)
  expect(server.requests.at(-1)?.headers.authorization).toBe('Bearer key')

  const { server: other } = await against(empty)
  const refused = await slipway(['vm', 'list', '--api-url', other.url])
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('No credentials for')
  expect(other.requests).toHaveLength(0)
})

test('a proxy from the environment is used, except for the hosts in NO_PROXY', async () => {
  const { server: proxy } = await against(empty)
  const words = ['vm', 'list', '-o', 'json']
  const env = { SLIPWAY_API_URL: 'http://slipway.test', SLIPWAY_ACCESS_KEY: 'key', SLIPWAY_PROJECT: project }
  const through = await executable(words, { env: { ...env, HTTP_PROXY: proxy.url } })
  expect(through).toEqual({ code: 0, stdout: '[]\n', stderr: '' })
  expect(proxy.requests.map(({ path }) => path)).toEqual([`http://slipway.test/v0.1/projects/${project}/vms`])
  expect(proxy.requests[0]?.headers.host).toBe('slipway.test')
  const { server } = await against(empty)
  const direct = { ...env, SLIPWAY_API_URL: server.url, HTTP_PROXY: proxy.url, NO_PROXY: '127.0.0.1' }
  expect((await executable(words, { env: direct })).code).toBe(0)
  expect(proxy.requests).toHaveLength(1)
})

test('https requests use a tunnel through HTTPS_PROXY, and a certificate in NODE_EXTRA_CA_CERTS is trusted', async () => {
  const fixture = (ending: string) =>
    join(checkout, `packages/server/test/support/fixtures/tls/first.${ending}`)
  const service = createHttpsServer(
    { cert: readFileSync(fixture('crt')), key: readFileSync(fixture('key')) },
    (_request, response) => response.end(JSON.stringify({ items: [], next_page_token: '' })),
  )
  const tunnels: string[] = []
  const proxy = createServer().on('connect', (request: IncomingMessage, socket: Socket) => {
    tunnels.push(request.url!)
    const [host, port] = request.url!.split(':')
    const onward = connect(Number(port), host!, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    for (const end of [socket, onward]) end.on('error', () => {})
  })
  for (const each of [service, proxy]) {
    await new Promise<void>((resolve) => each.listen(0, '127.0.0.1', resolve))
    closers.push(async () => {
      each.closeAllConnections()
      each.close()
    })
  }
  const portOf = (each: typeof proxy | typeof service) => (each.address() as AddressInfo).port
  const env = {
    SLIPWAY_API_URL: `https://127.0.0.1:${portOf(service)}`,
    SLIPWAY_ACCESS_KEY: 'key',
    SLIPWAY_PROJECT: project,
    HTTPS_PROXY: `http://127.0.0.1:${portOf(proxy)}`,
  }
  const words = ['vm', 'list', '-o', 'json']
  const untrusted = await executable(words, { env })
  expect(untrusted.code).toBe(1)
  expect(untrusted.stderr).toContain('certificate')
  const trusted = await executable(words, { env: { ...env, NODE_EXTRA_CA_CERTS: fixture('crt') } })
  expect(trusted).toEqual({ code: 0, stdout: '[]\n', stderr: '' })
  expect(new Set(tunnels)).toEqual(new Set([`127.0.0.1:${portOf(service)}`]))
})
