import { createHash } from 'node:crypto'
import { constants, promises as fs } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EmbeddedError } from './error.ts'

const timeoutMs = 120_000
const pollMs = 20
/** O_EXLOCK on BSD and macOS. Node passes it to open(2) but does not export it. */
const openLocked = 0x20

/**
 * Runs `work` while no other process on this machine does so for the same data directory. The kernel holds
 * the lock (an abstract socket name on Linux, a locked file elsewhere), so that it is released even if its
 * holder crashes.
 */
export async function exclusively<T>(dataDir: string, secret: string, work: () => Promise<T>): Promise<T> {
  const acquire =
    process.platform === 'linux' ? () => bindName(secret) : () => lockFile(join(dataDir, 'postgres.lock'))
  const deadline = Date.now() + timeoutMs
  let release = await acquire()
  while (!release) {
    if (Date.now() > deadline)
      throw new EmbeddedError(
        `another server has held the lock on ${dataDir} for more than ${timeoutMs / 1000} s: check for a server process that hangs during startup`,
      )
    await delay(pollMs)
    release = await acquire()
  }
  try {
    return await work()
  } finally {
    await release()
  }
}

type Release = () => Promise<void>

function bindName(secret: string): Promise<Release | null> {
  const name = `\0slipway-${createHash('sha256').update(`lock ${secret}`).digest('hex').slice(0, 32)}`
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    )
    server.listen({ path: name, exclusive: true }, () =>
      resolve(() => new Promise((done) => server.close(() => done()))),
    )
  })
}

async function lockFile(path: string): Promise<Release | null> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | openLocked
  try {
    const file = await fs.open(path, flags, 0o600)
    return () => file.close()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EAGAIN' || code === 'EWOULDBLOCK') return null
    throw error
  }
}
