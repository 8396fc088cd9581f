import type { IncusContext } from './context.ts'
import { type Instance, isOn, marks } from './instances.ts'

const keptBytes = 1024 * 1024
/** More than any guest writes between two starts. */
const bytesPerStart = 2 ** 32

/**
 * Console output of guests. For a VM, Incus returns all output since the VM's last start. Each start has its
 * own range of offsets, so that a reader misses nothing after a restart. For a running container, which is
 * only for tests, Incus returns each byte once, so the bytes are kept in memory.
 */
export class SerialLogs {
  readonly #ctx: IncusContext
  readonly #read = new Map<string, Buffer>()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  async read(instance: Instance, signal: AbortSignal): Promise<{ bytes: Buffer; startsAt: number }> {
    const path = `/1.0/instances/${instance.name}/console`
    const output = await this.#ctx.client.text(path, { signal, query: { type: 'log' } })
    if (this.#ctx.config.instanceType === 'virtual-machine')
      return { bytes: output, startsAt: Number(instance.config[marks.restarts] ?? 0) * bytesPerStart }
    const id = instance.config[marks.id]!
    const all = isOn(instance) ? Buffer.concat([this.#read.get(id) ?? Buffer.alloc(0), output]) : output
    this.#read.set(id, all.subarray(0, keptBytes))
    return { bytes: all, startsAt: 0 }
  }

  forget(vmId: string): void {
    this.#read.delete(vmId)
  }
}
