import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freeze, thaw } from '../../src/engines/qemu/captures/guest-agent.ts'

let folder: string
let server: Server
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-agent-'))
})
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true, force: true })
})

/** Starts a stand-in for a guest agent, which calls `answer` with each line that it receives. */
async function guest(answer: (line: string, socket: Socket) => void): Promise<string> {
  const path = join(folder, 'agent.sock')
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      for (const line of chunk.toString().split('\n').filter(Boolean)) answer(line, socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return path
}

const say = (socket: Socket, message: object) => socket.write(`${JSON.stringify(message)}\n`)
const idOf = (line: string) => JSON.parse(line).arguments?.id as number

test('a guest agent freezes and thaws, even if an old response comes first', async () => {
  const commands: string[] = []
  const path = await guest((line, socket) => {
    const { execute } = JSON.parse(line)
    commands.push(execute)
    if (execute === 'guest-sync') {
      say(socket, { return: 7 })
      socket.write('not JSON\n')
    }
    say(socket, { return: idOf(line) ?? 1 })
  })
  expect([await freeze(path), await thaw(path)]).toEqual(['frozen', true])
  expect(commands).toEqual(['guest-sync', 'guest-fsfreeze-freeze', 'guest-sync', 'guest-fsfreeze-thaw'])
})

test('a guest agent that refuses, hangs up or floods the connection does not count as frozen', async () => {
  const path = await guest((line, socket) =>
    line.includes('guest-sync')
      ? say(socket, { return: idOf(line) })
      : say(socket, { error: { class: 'CommandNotFound', desc: 'no' } }),
  )
  expect([await freeze(path), await thaw(path)]).toEqual(['not_frozen', false])
  await new Promise((resolve) => server.close(resolve))
  const closing = await guest((_, socket) => socket.destroy())
  expect([await freeze(closing), await thaw(closing)]).toEqual(['not_frozen', false])
  await new Promise((resolve) => server.close(resolve))
  const flooding = await guest((_, socket) => socket.write('x'.repeat(1024 ** 2)))
  expect([await freeze(flooding), await thaw(flooding)]).toEqual(['not_frozen', false])
})

test('a guest whose agent got the request but did not respond may still freeze', async () => {
  const path = await guest((line, socket) =>
    line.includes('guest-sync') ? say(socket, { return: idOf(line) }) : socket.destroy(),
  )
  expect([await freeze(path), await thaw(path)]).toEqual(['unknown', false])
})

test('a VM without a port for the agent cannot be frozen', async () => {
  server = createServer()
  expect(await freeze(join(folder, 'no.sock'))).toBe('not_frozen')
})
