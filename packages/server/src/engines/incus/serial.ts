import type { IncusContext } from './context.ts'
import { type Instance, isOn, marks } from './instances.ts'

const keptBytes = 1024 * 1024
/** No guest says more between two starts. */
const bytesOfStart = 2 ** 32

/**
 * What guests said on their consoles. Incus returns what a VM said since its start: each start has offsets of its own, so
 * that whoever reads on misses nothing. Of a container that runs it returns each byte once: what was read is kept here,
 * which is enough for the tests that containers are for.
 */
export class SerialLogs {
  readonly #ctx: IncusContext
  readonly #read = new Map<string, Buffer>()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  async read(instance: Instance, signal: AbortSignal): Promise<{ bytes: Buffer; startsAt: number }> {
    const path = `/1.0/instances/${instance.name}/console`
    const said = await this.#ctx.client.text(path, { signal, query: { type: 'log' } })
    if (this.#ctx.config.instanceType === 'virtual-machine')
      return { bytes: said, startsAt: Number(instance.config[marks.restarts] ?? 0) * bytesOfStart }
    const id = instance.config[marks.id]!
    const all = isOn(instance) ? Buffer.concat([this.#read.get(id) ?? Buffer.alloc(0), said]) : said
    this.#read.set(id, all.subarray(0, keptBytes))
    return { bytes: all, startsAt: 0 }
  }

  forget(vmId: string): void {
    this.#read.delete(vmId)
  }
}
