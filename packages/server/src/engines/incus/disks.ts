import { type Call, type DiskRef, type DiskSpec, type DiskStatus, EngineError } from '../engine.ts'
import { isCode } from './client.ts'
import type { IncusContext } from './context.ts'
import { markGone, requireNotGone } from './gone.ts'
import { generationMark, generationOf, marks, unavailable } from './instances.ts'

interface Volume {
  name: string
  type: string
  config: Record<string, string>
}

const sizeMark = 'user.slipway.size-gib'

export const volumeName = (diskId: string) => `disk-${diskId}`

/** Data disks as custom volumes: blocks for VMs, directories for shared volumes and for the containers of tests. */
export class Disks {
  readonly #ctx: IncusContext

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  async ensure(disk: DiskSpec, call: Call): Promise<void> {
    if (await this.#checked(disk.id, call)) return this.#write(disk.id, call, {})
    await requireNotGone(this.#ctx, disk.id, call)
    const { instanceType } = this.#ctx.config
    const isBlock = instanceType === 'virtual-machine' && disk.type === 'persistent-ssd'
    const body = {
      name: volumeName(disk.id),
      content_type: isBlock ? 'block' : 'filesystem',
      config: { [marks.id]: disk.id, ...sized(disk.sizeGib), ...generationMark(call.generation) },
    }
    await this.#ctx.client
      .change('POST', this.#path(), body, { signal: call.signal, timeoutMs: 60_000 })
      .catch((error) => {
        if (!isCode(error, 409) && !/already exists/i.test((error as Error).message)) throw unavailable(error)
      })
    // Removed meanwhile: whoever did so may have looked before it was there.
    await requireNotGone(this.#ctx, disk.id, call).catch(async (error) => {
      await this.#delete(disk.id, call.signal)
      throw error
    })
  }

  async grow(disk: DiskSpec, call: Call): Promise<void> {
    const known = await this.#checked(disk.id, call)
    if (!known) throw new EngineError('missing', `no such disk: ${disk.id}`)
    const isLarger = disk.sizeGib > statusOf(known).sizeGib
    await this.#write(disk.id, call, isLarger ? sized(disk.sizeGib) : {})
  }

  async remove(disk: DiskRef, call: Call): Promise<void> {
    await this.#checked(disk.id, call)
    await markGone(this.#ctx, disk.id, call)
    await this.#delete(disk.id, call.signal)
  }

  async find({ id }: DiskRef, signal: AbortSignal): Promise<DiskStatus | null> {
    const found = await this.#ctx.client.find<Volume>(this.#path(id), { signal })
    return found ? statusOf(found.value) : null
  }

  async require(id: string, signal: AbortSignal): Promise<void> {
    if (!(await this.find({ id, host: '' }, signal))) throw new EngineError('missing', `no such disk: ${id}`)
  }

  async list(signal: AbortSignal): Promise<DiskStatus[]> {
    const volumes = await this.#ctx.client.get<Volume[]>(this.#path(), { signal, query: { recursion: '1' } })
    return volumes.filter(({ config }) => config[marks.id]).map(statusOf)
  }

  async #checked(id: string, call: Call): Promise<Volume | undefined> {
    const found = (await this.#ctx.client.find<Volume>(this.#path(id), { signal: call.signal }))?.value
    if (found && generationOf(found) > call.generation)
      throw new EngineError(
        'stale',
        `${id}: generation ${call.generation} comes after ${generationOf(found)}`,
      )
    return found
  }

  async #write(id: string, call: Call, config: Record<string, string>): Promise<void> {
    const body = { config: { ...config, ...generationMark(call.generation) } }
    await this.#ctx.client.change('PATCH', this.#path(id), body, { signal: call.signal }).catch((error) => {
      throw unavailable(error)
    })
  }

  async #delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#ctx.client
      .change('DELETE', this.#path(id), undefined, { signal, timeoutMs: 60_000 })
      .catch((error) => {
        if (isCode(error, 404)) return
        if (isCode(error, 400))
          throw new EngineError('rejected', `disk ${id}: ${error.message}`, { cause: error })
        throw unavailable(error)
      })
  }

  #path(id?: string): string {
    const all = `/1.0/storage-pools/${this.#ctx.config.storagePool}/volumes/custom`
    return id ? `${all}/${volumeName(id)}` : all
  }
}

const sized = (sizeGib: number) => ({ size: `${sizeGib}GiB`, [sizeMark]: String(sizeGib) })

const statusOf = (volume: Volume): DiskStatus => ({
  id: volume.config[marks.id] ?? '',
  generation: generationOf(volume),
  sizeGib: Number(volume.config[sizeMark] ?? 0),
})
