import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { Launcher, readyLine, serverProgram } from '@slipway/testing/launcher.ts'
import { freePort } from '@slipway/testing/port.ts'
import type { Program } from '@slipway/testing/program.ts'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'

// Real servers are slow on a machine that is busy with the other tests.
vi.setConfig({ testTimeout: 120_000 })
const launcher = new Launcher()
const dataDir = launcher.newDataDir()
const port = await freePort()
const url = `http://127.0.0.1:${port}`
const args = [serverProgram, '--port', String(port), '--data-dir', dataDir]
let pipes = 0
const crashOnSignal =
  'data:text/javascript,process.on("SIGUSR2", () => { throw new Error("thrown by the test") })'

afterAll(async () => {
  vi.resetConfig()
  await launcher.clear()
})

/** Starts a server whose standard output goes where the shell redirects it. SIGUSR2 crashes the server. */
function startRedirected(redirection: string): Program {
  const command = `exec "$0" "$@" ${redirection}`
  return launcher.run('sh', ['-c', command, process.execPath, '--import', crashOnSignal, ...args])
}

/** Starts a server whose standard output is a socket that this process reads. */
async function startRead(): Promise<Program> {
  const server = launcher.run(process.execPath, ['--import', crashOnSignal, ...args])
  await server.until(readyLine)
  return server
}

/** Starts a server whose standard output is a pipe that is read only on demand. */
async function startOnPipe(redirection = (pipe: string) => `> ${pipe}`) {
  const path = join(launcher.dir, `pipe-${++pipes}`)
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  onTestFinished(() => closeSync(fd))
  const server = startRedirected(redirection(path))
  const buffer = Buffer.alloc(65_536)
  let text = ''
  const readAll = () => {
    try {
      for (let n = readSync(fd, buffer); n > 0; n = readSync(fd, buffer))
        text += buffer.toString('latin1', 0, n)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
    return text
  }
  await eventually(() => readyLine.test(readAll()), 60_000)
  return { server, readAll }
}

const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)![1])
}

const droppedLines = () => metric('slipway_log_dropped_lines_total')

/** Sends requests whose log lines are long, until lines are dropped. */
async function requestUntilDropped(): Promise<void> {
  const path = `/${'x'.repeat(8_000)}`
  for (let sent = 0; (await droppedLines()) === 0; sent += 20) {
    expect(sent).toBeLessThan(1_000)
    // Any response will do, whether or not the rate limit is reached.
    for (let i = 0; i < 20; i++) expect([404, 429]).toContain((await fetch(`${url}${path}`)).status)
  }
}

test('a server whose log is not read still responds, counts dropped lines, and reports them once the log is read', async () => {
  const { server, readAll } = await startOnPipe()
  await requestUntilDropped()
  expect((await fetch(`${url}/readyz`)).status).toBe(200)

  await eventually(() => /lines were dropped[^\n]*\n/.test(readAll()), 20_000)
  const reports = readAll()
    .split('\n')
    .filter((line) => line.includes('lines were dropped'))
  expect(reports).toHaveLength(1)
  const report = JSON.parse(reports[0]!)
  expect(report).toMatchObject({ level: 40, lines: await droppedLines() })
  // The log is complete again, and no line is truncated.
  expect((await fetch(`${url}/healthz?after`)).status).toBe(200)
  await eventually(() => readAll().includes('"path":"/healthz"'), 20_000)
  const lines = readAll().split('\n').slice(0, -1)
  for (const line of lines.slice(lines.findIndex((each) => readyLine.test(each))))
    expect(JSON.parse(line)).toHaveProperty('msg')

  expect(await server.end('SIGTERM')).toBe(0)
  expect(readAll()).toContain('"route":"/healthz"')
})

test.each([
  ['a pipe', async () => (await startOnPipe((pipe) => `> ${pipe} 2>&1`)).server],
  [
    'a socket',
    async () => {
      const server = await startRead()
      server.pauseReading()
      return server
    },
  ],
])('a server whose log is %s that is not read stops on SIGTERM', async (_name, start) => {
  const server = await start()
  await requestUntilDropped()
  server.signal('SIGTERM')
  await eventually(() => server.hasExited, 20_000)
  server.resumeReading()
  expect((await server.ended()).code).toBe(0)
})

test('a crash of a server whose log is not read ends the process', async () => {
  const { server } = await startOnPipe((pipe) => `> ${pipe} 2>&1`)
  await requestUntilDropped()
  expect(await server.end('SIGUSR2')).not.toBe(0)
})

test('a server whose log goes to a full disk still responds, counts dropped lines, and stops on SIGTERM', async () => {
  const server = startRedirected('> /dev/full')
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await eventually(isReady, 60_000)
  await requestUntilDropped()
  expect(await server.end('SIGTERM')).toBe(0)
})

test('a crash is the last line of the log, after all buffered lines', async () => {
  const server = await startRead()
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect(await server.end('SIGUSR2')).not.toBe(0)
  const { output, errors } = await server.ended()
  expect(output).toContain('"path":"/healthz"')
  expect(JSON.parse(output.trimEnd().split('\n').at(-1)!)).toMatchObject({
    level: 60,
    msg: 'crashed',
    err: { message: 'thrown by the test' },
  })
  expect(errors).toContain('Error: thrown by the test')
})

test('a server whose log is closed still responds, counts dropped lines, and stops on SIGTERM', async () => {
  const server = await startRead()
  server.stopReading()
  await requestUntilDropped()
  expect(await server.end('SIGTERM')).toBe(0)
})

test('a crash of a server whose log is closed ends the process', async () => {
  const server = await startRead()
  server.stopReading()
  expect(await server.end('SIGUSR2')).not.toBe(0)
})
