import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { FrameSocket } from '../../src/engines/qemu/forwarder/frame-socket.ts'
import { networkLimits, RateLimit } from '../../src/engines/qemu/forwarder/rate-limit.ts'

// The tests check minimum times, because a slow machine only makes transfers slower.
const frame = Buffer.alloc(1_000)
const frames = 400
/** 1 MB/s, so the frames take 0.4 s, except those that pass immediately: one read of 64 KiB, and 50 ms of frames. */
const gbps = 0.008
const leastMs = 200

const folder = mkdtempSync(join(tmpdir(), 'slipway-frames-'))
const path = join(folder, 'card.sock')
const server = createServer()
let guest: Socket
let received = 0
let card: FrameSocket

beforeAll(async () => {
  server.listen(path)
  await once(server, 'listening')
  card = new FrameSocket(path, networkLimits(gbps), () => received++)
  ;[guest] = (await once(server, 'connection')) as [Socket]
  await eventually(() => card.isConnected)
})
afterAll(() => {
  card.close()
  server.close()
  rmSync(folder, { recursive: true })
})

test('frames to a guest are sent no faster than the limit, and none is lost', async () => {
  const startedAt = performance.now()
  let bytes = 0
  guest.on('data', (chunk) => {
    bytes += chunk.length
  })
  for (let n = 0; n < frames; n++) card.send(frame)
  await eventually(() => bytes === frames * (frame.length + 4))
  expect(performance.now() - startedAt).toBeGreaterThan(leastMs)
})

test('frames of a guest are read no faster than the limit, and none is lost', async () => {
  const header = Buffer.alloc(4)
  header.writeUInt32BE(frame.length)
  const startedAt = performance.now()
  for (let n = 0; n < frames; n++) guest.write(Buffer.concat([header, frame]))
  await eventually(() => received === frames)
  expect(performance.now() - startedAt).toBeGreaterThan(leastMs)
})

test('a process that wakes up 40 ms late each time still reaches the limit, and no more', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const limit = new RateLimit(gbps)
  let bytes = 0
  for (let ms = 0; ms < 10_000; ms += 40) {
    for (; limit.waitMs === 0; bytes += frame.length) limit.take(frame.length)
    vi.advanceTimersByTime(40)
  }
  expect(bytes / 10_000_000).toBeGreaterThan(0.98)
  expect(bytes / 10_000_000).toBeLessThan(1.02)
})
