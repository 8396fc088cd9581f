import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below those that the kernel hands out: nobody gets one of these by chance while it is free for a moment. */
const ports = { from: 12_000, to: 32_000 }

/** A port of loopback at which nobody listens. */
export async function freePort(): Promise<number> {
  const port = randomInt(ports.from, ports.to)
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
  return isFree ? port : freePort()
}
