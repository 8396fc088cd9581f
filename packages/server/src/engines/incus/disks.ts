import { type Call, type DiskRef, type DiskSpec, type DiskStatus, EngineError } from '../engine.ts'
import { isCode } from './client.ts'
import type { IncusContext } from './context.ts'
import { markGone, requireNotGone } from './gone.ts'
import { generationMark, generationOf, marks, unavailable, volumeName } from './instances.ts'
import { serverInfo } from './members.ts'
import {
  dropUnplaced,
  findUnplaced,
  listUnplaced,
  putUnplaced,
  requireNotNewer,
  type UnplacedDisk,
} from './unplaced-disks.ts'

interface Volume {
  name: string
  type: string
  /** The member that has it, where the pool is local to each; 'none' or '' elsewhere. */
  location: string
  config: Record<string, string>
}

const sizeMark = 'user.slipway.size-gib'

/**
 * Data disks as custom volumes: blocks for VMs, directories for shared volumes and for the containers of tests. Names are
 * unique in a cluster, so that Incus finds the member of a volume by itself.
 */
export class Disks {
  readonly #ctx: IncusContext

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  async ensure(disk: DiskSpec, call: Call): Promise<void> {
    if (await this.#checked(disk.id, call)) return this.#write(disk.id, call, {})
    await requireNotGone(this.#ctx, disk.id, call)
    if (await isPoolOfMembers(this.#ctx, call.signal))
      await putUnplaced(this.#ctx, disk.id, call, promised(disk.sizeGib))
    else await this.#make(disk, null, call)
    await this.#requireWanted(disk.id, call)
  }

  /** Has the disk where a VM of this host can have it; the first VM of a local disk decides where that is. */
  async place(disk: DiskSpec, host: string, { signal }: Call): Promise<void> {
    const isOfMembers = await isPoolOfMembers(this.#ctx, signal)
    const volume = await this.#volume(disk.id, signal)
    if (volume && isOfMembers && volume.location !== host)
      throw new EngineError('rejected', `the disk ${disk.id} is on ${volume.location}, the VM on ${host}`)
    if (volume) return
    const unplaced = isOfMembers ? await findUnplaced(this.#ctx, disk.id, signal) : undefined
    if (!unplaced) throw new EngineError('missing', `no such disk: ${disk.id}`)
    const { sizeGib, generation } = statusOf(unplaced)
    await this.#make({ ...disk, sizeGib }, host, { generation, signal })
    await this.#requireWanted(disk.id, { generation, signal })
    await dropUnplaced(this.#ctx, disk.id, signal)
  }

  async grow(disk: DiskSpec, call: Call): Promise<void> {
    const known = await this.#checked(disk.id, call)
    if (known) {
      const isLarger = disk.sizeGib > statusOf(known).sizeGib
      return this.#write(disk.id, call, isLarger ? sized(disk.sizeGib) : {})
    }
    const unplaced = await this.#unplaced(disk.id, call.signal)
    if (!unplaced) throw new EngineError('missing', `no such disk: ${disk.id}`)
    const isLarger = disk.sizeGib > statusOf(unplaced).sizeGib
    await putUnplaced(this.#ctx, disk.id, call, isLarger ? promised(disk.sizeGib) : {})
  }

  async remove(disk: DiskRef, call: Call): Promise<void> {
    if (!(await this.#checked(disk.id, call)))
      requireNotNewer(disk.id, await this.#unplaced(disk.id, call.signal), call)
    await markGone(this.#ctx, disk.id, call)
    await this.#delete(disk.id, call.signal)
  }

  async find({ id }: DiskRef, signal: AbortSignal): Promise<DiskStatus | null> {
    const found = (await this.#volume(id, signal)) ?? (await this.#unplaced(id, signal))
    return found ? statusOf(found) : null
  }

  async list(signal: AbortSignal): Promise<DiskStatus[]> {
    const [volumes, unplaced] = await Promise.all([
      this.#ctx.client.get<Volume[]>(this.#path(), { signal, query: { recursion: '1' } }),
      isPoolOfMembers(this.#ctx, signal).then((isIt) => (isIt ? listUnplaced(this.#ctx, signal) : [])),
    ])
    // One that is being placed is told once, as what it will be.
    const found = [...unplaced, ...volumes].filter(({ config }) => config[marks.id]).map(statusOf)
    return [...new Map(found.map((disk) => [disk.id, disk])).values()]
  }

  async #volume(id: string, signal: AbortSignal): Promise<Volume | undefined> {
    return (await this.#ctx.client.find<Volume>(this.#path(id), { signal }))?.value
  }

  async #unplaced(id: string, signal: AbortSignal): Promise<UnplacedDisk | undefined> {
    return (await isPoolOfMembers(this.#ctx, signal)) ? findUnplaced(this.#ctx, id, signal) : undefined
  }

  async #checked(id: string, call: Call): Promise<Volume | undefined> {
    const found = await this.#volume(id, call.signal)
    requireNotNewer(id, found, call)
    return found
  }

  async #make(disk: DiskSpec, member: string | null, { generation, signal }: Call): Promise<void> {
    const { instanceType } = this.#ctx.config
    const isBlock = instanceType === 'virtual-machine' && disk.type === 'persistent-ssd'
    const body = {
      name: volumeName(disk.id),
      content_type: isBlock ? 'block' : 'filesystem',
      config: { [marks.id]: disk.id, ...sized(disk.sizeGib), ...generationMark(generation) },
    }
    const options = { signal, timeoutMs: 60_000, ...(member && { query: { target: member } }) }
    await this.#ctx.client.change('POST', this.#path(), body, options).catch((error) => {
      if (!isCode(error, 409) && !/already exists/i.test((error as Error).message)) throw unavailable(error)
    })
  }

  /** Removed meanwhile: whoever did so may have looked before it was there. */
  async #requireWanted(id: string, call: Call): Promise<void> {
    await requireNotGone(this.#ctx, id, call).catch(async (error) => {
      await this.#delete(id, call.signal)
      throw error
    })
  }

  async #write(id: string, call: Call, config: Record<string, string>): Promise<void> {
    const body = { config: { ...config, ...generationMark(call.generation) } }
    await this.#ctx.client.change('PATCH', this.#path(id), body, { signal: call.signal }).catch((error) => {
      if (/^in use$/i.test((error as Error).message))
        throw new EngineError('rejected', `Incus grows no disk of a VM that runs: stop it, or detach ${id}`)
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
    if (await isPoolOfMembers(this.#ctx, signal)) await dropUnplaced(this.#ctx, id, signal)
  }

  #path(id?: string): string {
    const all = `/1.0/storage-pools/${this.#ctx.config.storagePool}/volumes/custom`
    return id ? `${all}/${volumeName(id)}` : all
  }
}

/** Whether each member of a cluster has disks of its own, which no other member sees. */
async function isPoolOfMembers(ctx: IncusContext, signal: AbortSignal): Promise<boolean> {
  const { environment } = await serverInfo(ctx, signal)
  if (!environment.server_clustered) return false
  const path = `/1.0/storage-pools/${ctx.config.storagePool}`
  const pool = await ctx.client.find<{ driver: string }>(path, { signal })
  const drivers = environment.storage_supported_drivers ?? []
  return drivers.some(({ Name, Remote }) => Name === pool?.value.driver && !Remote)
}

const promised = (sizeGib: number) => ({ [sizeMark]: String(sizeGib) })
const sized = (sizeGib: number) => ({ size: `${sizeGib}GiB`, ...promised(sizeGib) })

const statusOf = ({ config }: Pick<Volume, 'config'>): DiskStatus => ({
  id: config[marks.id] ?? '',
  generation: generationOf({ config }),
  sizeGib: Number(config[sizeMark] ?? 0),
})
