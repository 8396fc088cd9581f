import { Socket } from 'node:net'

/**
 * A connection to PostgreSQL on which all that is written until the next tick goes out in one piece: mostly what a
 * transaction asks without waiting in between. A write wakes another process, and that costs more than what most statements
 * do. Under TLS nothing is joined: there the driver writes to a socket of its own.
 */
export class JoinedSocket extends Socket {
  #isJoining = false

  override connect(...args: unknown[]): this {
    Reflect.apply(super.connect, this, args)
    // Node puts its own in front of ours, for sockets that are used again.
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
