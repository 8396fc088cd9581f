import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Ports below the range from which the kernel assigns ports, so that no other program gets one by chance. */
const ports = { from: 12_000, to: 32_000 }

/** Returns a free loopback port. */
export async function freePort(): Promise<number> {
  const port = randomInt(ports.from, ports.to)
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
  return isFree ? port : freePort()
}
