import { Socket } from 'node:net'

/**
 * A connection to PostgreSQL that joins all data written until the next tick into one write. The data is
 * mostly statements that a transaction sends without waiting in between. Each write wakes another process,
 * which costs more than most statements. With TLS nothing is joined, because the driver then writes to its
 * own socket.
 */
export class JoinedSocket extends Socket {
  #isJoining = false

  override connect(...args: unknown[]): this {
    Reflect.apply(super.connect, this, args)
    // Node sets its own `write` on the instance, for sockets that are reused, which would hide this class's
    // method.
    Reflect.deleteProperty(this, 'write')
    return this
  }

  override write(...args: unknown[]): boolean {
    if (!this.#isJoining) {
      this.#isJoining = true
      this.cork()
      process.nextTick(() => {
        this.#isJoining = false
        this.uncork()
      })
    }
    return super.write(...(args as Parameters<Socket['write']>))
  }
}
