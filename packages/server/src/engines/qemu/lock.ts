import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { InOrder } from '../in-order.ts'

/**
 * A mutex across all processes of this machine that share a state directory. It is an abstract unix socket, which the kernel
 * releases when its holder dies, so that there are no stale locks.
 */
export class Locks {
  readonly #prefix: string
  /** Callers in this process wait here; only the first of them competes with other processes. */
  readonly #here = new InOrder()

  constructor(stateDir: string) {
    this.#prefix = createHash('sha256').update(stateDir).digest('hex').slice(0, 24)
  }

  with<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.#here.do(name, () => this.#lockAndRun(name, signal, work))
  }

  /** Does the work only if the lock is free. Returns whether the lock was free. */
  async tryWith(name: string, work: () => Promise<void>): Promise<boolean> {
    const server = await tryListen(this.#address(name))
    if (!server) return false
    try {
      await work()
      return true
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  }

  #address(name: string): string {
    return `\0slipway-${this.#prefix}-${name}`
  }

  async #lockAndRun<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const address = this.#address(name)
    let server = await tryListen(address)
    while (!server) {
      await sleep(25, undefined, { signal })
      server = await tryListen(address)
    }
    try {
      signal.throwIfAborted()
      return await work()
    } finally {
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

function tryListen(address: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    )
    server.listen(address, () => resolve(server))
  })
}
