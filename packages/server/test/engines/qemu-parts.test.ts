import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Fences } from '../../src/engines/qemu/fences.ts'
import { Locks } from '../../src/engines/qemu/lock.ts'
import { StatePaths } from '../../src/engines/qemu/paths.ts'
import { withQmp } from '../../src/engines/qemu/process/qmp.ts'
import { lastSerialLines, limitSerial, readSerial } from '../../src/engines/qemu/process/serial-log.ts'

const signal = AbortSignal.timeout(600_000)
const patienceMs = 50_000
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-parts-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('generations on disk persist after the process that wrote them', async () => {
  const paths = new StatePaths(folder, 'local-a')
  await new Fences(paths).remember('vm-1', 5)
  const later = new Fences(new StatePaths(folder, 'local-a'))
  await expect(later.check('vm-1', 4, 'change')).rejects.toMatchObject({ kind: 'stale' })
  await expect(later.check('vm-1', 5, 'change')).resolves.toBeUndefined()
})

test('generations on disk prevent a removed resource from being recreated by its own generation', async () => {
  const fences = new Fences(new StatePaths(folder, 'local-a'))
  await fences.markRemoved('vm-1', 5)
  await expect(fences.check('vm-1', 5, 'make')).rejects.toMatchObject({ kind: 'stale' })
  await expect(fences.check('vm-1', 5, 'remove')).resolves.toBeUndefined()
  await expect(fences.check('vm-1', 6, 'make')).resolves.toBeUndefined()
})

test('generations on disk are separate for the firewall', async () => {
  const fences = new Fences(new StatePaths(folder, 'local-a'))
  await fences.remember('vm-1', 9)
  await fences.advanceFirewall('vm-1', 2)
  await expect(fences.advanceFirewall('vm-1', 1)).rejects.toMatchObject({ kind: 'stale' })
  await expect(fences.check('vm-1', 9, 'change')).resolves.toBeUndefined()
})

test('generations on disk reject an id that would leave its folder', () => {
  expect(() => new StatePaths(folder, 'local-a').vm('../../etc')).toThrow(RangeError)
})

test('file locks have one holder at a time, even across two instances', async () => {
  const lockers = [new Locks(folder), new Locks(folder)]
  let inside = 0
  let most = 0
  const useLock = (locks: Locks) =>
    locks.with('vm-1', signal, async () => {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setTimeout(resolve, 5))
      inside -= 1
    })
  await Promise.all([...lockers, ...lockers, ...lockers].map(useLock))
  expect(most).toBe(1)
})

test('a file lock is released when the work fails, and waiting for a lock ends when the signal is aborted', async () => {
  const [one, other] = [new Locks(folder), new Locks(folder)]
  await expect(one.with('a', signal, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  await one.with('a', signal, async () => {
    await expect(other.with('a', AbortSignal.timeout(50), async () => {})).rejects.toThrow(/abort|timeout/i)
  })
})

test('the serial log continues where the reader stopped', async () => {
  await writeFile(join(folder, 'serial.log'), 'one\ntwo\n')
  expect(await readSerial(folder, 0)).toEqual({ content: 'one\ntwo\n', nextOffset: 8 })
  expect(await readSerial(folder, 4)).toEqual({ content: 'two\n', nextOffset: 8 })
  expect(await readSerial(folder, 99)).toEqual({ content: '', nextOffset: 8 })
})

test('the serial log is split only between characters', async () => {
  await writeFile(join(folder, 'serial.log'), Buffer.from('grün €').subarray(0, -1))
  expect(await readSerial(folder, 0)).toEqual({ content: 'grün ', nextOffset: 6 })
})

test('the serial log in an error contains no terminal control sequences', async () => {
  const loud = '\x1b[2J\x1b[01;01H\x1b[0;32m  OK  \x1b[0m Started\r\n\x1bc\x07second \x9b31m line\n'
  await writeFile(join(folder, 'serial.log'), loud)
  expect(await lastSerialLines(folder)).toBe('OK   Started\nsecond 31m line')
})

test('the serial log returns the last 64 KiB unless an offset is given', async () => {
  await writeFile(join(folder, 'serial.log'), 'x'.repeat(100_000))
  const { content, nextOffset } = await readSerial(folder, undefined)
  expect([content.length, nextOffset]).toEqual([65_536, 100_000])
})

test('the serial log keeps its offsets when it is truncated because of its size', async () => {
  await writeFile(join(folder, 'serial.log'), 'x'.repeat(1_000))
  await limitSerial(folder, 500)
  await writeFile(join(folder, 'serial.log'), 'after')
  expect(await readSerial(folder, 10)).toEqual({ content: 'after', nextOffset: 1_005 })
})

describe('a QMP connection', () => {
  let server: Server | undefined
  afterEach(() => server?.close())

  test('reaches a socket whose path is too long for a socket address', async () => {
    const deep = join(folder, 'd'.repeat(120))
    await import('node:fs/promises').then(({ mkdir }) => mkdir(deep))
    const workingDir = process.cwd()
    process.chdir(deep)
    await serve('qmp.sock', echoCommand).finally(() => process.chdir(workingDir))
    const status = await withQmp(join(deep, 'qmp.sock'), patienceMs, (qmp) => qmp.execute('query-status'))
    expect(status).toEqual({ command: 'query-status' })
  })

  test('does not wait for a silent QEMU', async () => {
    await serve(join(folder, 'qmp.sock'), () => '')
    const session = withQmp(join(folder, 'qmp.sock'), 100, (qmp) => qmp.execute('stop'))
    await expect(session).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('100 ms'),
    })
  })

  test('fails as unavailable if the connection breaks', async () => {
    server = createServer((socket) => {
      socket.write('{"QMP":{"version":{}}}\n')
      socket.once('data', () => socket.destroy())
      socket.on('error', () => {})
    }).listen(join(folder, 'qmp.sock'))
    await once(server, 'listening')
    const session = withQmp(join(folder, 'qmp.sock'), patienceMs, (qmp) => qmp.execute('stop'))
    await expect(session).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test('reads a response that arrived while this process was blocked', async () => {
    const answers = new Int32Array(new SharedArrayBuffer(4))
    const path = join(folder, 'qmp.sock')
    const qemu = new Worker(respondingThread, { eval: true, workerData: { path, answers } })
    await once(qemu, 'message')
    const realTimeout = setTimeout
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    try {
      const session = withQmp(path, 1_000, async (qmp) => {
        // This simulates a process that resumes after a pause: timers run first, then input.
        await new Promise((resolve) => realTimeout(resolve))
        const stopped = qmp.execute('stop')
        // Blocks until the second response has arrived, and until the time is over.
        for (let count = 0; count < 2; count = Atomics.load(answers, 0)) Atomics.wait(answers, 0, count)
        vi.advanceTimersByTime(1_001)
        return stopped
      })
      expect(await session).toEqual({ isStopped: true })
    } finally {
      vi.useRealTimers()
      await qemu.terminate()
    }
  })

  test('distinguishes a refusal from silence', async () => {
    await serve(join(folder, 'qmp.sock'), (command) =>
      command === 'device_del'
        ? '{"error":{"class":"DeviceNotFound","desc":"no such device"}}'
        : '{"return":{}}',
    )
    const session = withQmp(join(folder, 'qmp.sock'), patienceMs, (qmp) =>
      qmp.execute('device_del', { id: 'x' }),
    )
    await expect(session).rejects.toMatchObject({ name: 'QmpError', message: 'device_del: no such device' })
  })

  /** The program of a QEMU stand-in in its own thread, which responds while this thread is blocked. */
  const respondingThread = `
    const { workerData: { path, answers }, parentPort } = require('node:worker_threads')
    const note = () => {
      Atomics.add(answers, 0, 1)
      Atomics.notify(answers, 0)
    }
    require('node:net').createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => socket.write('{"return":{"isStopped":true}}\\n', note))
      socket.write('{"QMP":{"version":{}}}\\n')
    }).listen(path, () => parentPort.postMessage('listening'))`

  const echoCommand = (command: string) => JSON.stringify({ return: { command } })

  async function serve(path: string, answer: (command: string) => string): Promise<void> {
    server = createServer((socket) => {
      socket.write('{"QMP":{"version":{}}}\n')
      socket.on('error', () => {})
      socket.on('data', (chunk) => {
        for (const line of chunk.toString().trim().split('\n')) {
          const reply = answer((JSON.parse(line) as { execute: string }).execute)
          if (reply) socket.write(`${reply}\n`)
        }
      })
    }).listen(path)
    await once(server, 'listening')
  }
})
