import {
  type Call,
  type DiskRef,
  type DiskSpec,
  type DiskStatus,
  EngineError,
  noSuchDisk,
  type VmSpec,
} from '../../engine.ts'
import type { BackgroundWork } from '../background.ts'
import { isCode, unavailable } from '../client.ts'
import type { IncusContext } from '../context.ts'
import { saysInUse } from '../error-texts.ts'
import { generationMark, generationOf, marks, volumeName } from '../instances.ts'
import {
  findProfile,
  listProfiles,
  type Profile,
  putProfile,
  removeProfile,
  requireNotNewer,
} from '../profiles.ts'
import { recordRemoval, requireNotRemoved } from '../removals.ts'
import { type Captures, copyError, copyName, copyRequest, isMember } from './captures.ts'
import { type DiskPools, diskPools, findVolume, isPoolLocal, poolOf, volumesPath } from './pools.ts'

interface Volume {
  name: string
  type: string
  /** The member that has the volume, if the pool is local to each member; otherwise 'none' or ''. */
  location: string
  config: Record<string, string>
}

type FoundVolume = Volume & { pool: string; path: string }

const sizeMark = 'user.slipway.size-gib'

/**
 * Data disks as custom volumes: block devices for VMs, directories for shared volumes and for test
 * containers. Names are unique in a cluster, so that Incus can find a volume's member. If the pool is local
 * to each member, a disk is unplaced until its first VM determines its member. Until then, only a profile
 * with the disk's name records it.
 */
export class Disks {
  readonly #ctx: IncusContext
  readonly #captures: Captures
  readonly #work: BackgroundWork

  constructor(ctx: IncusContext, captures: Captures, work: BackgroundWork) {
    this.#ctx = ctx
    this.#captures = captures
    this.#work = work
  }

  async ensure(disk: DiskSpec, call: Call): Promise<void> {
    const known = await this.#findNotNewer(disk.id, call)
    if (disk.source) return this.#restore({ ...disk, source: disk.source }, known, call)
    if (known) return this.#write(known, disk.id, call, {})
    await requireNotRemoved(this.#ctx, disk.id, call)
    if (await isPoolLocal(this.#ctx, poolOf(this.#ctx.config, disk.type), call.signal))
      await this.#writeUnplaced(disk.id, call, sizeRecord(disk.sizeGib))
    else await this.#create(disk, null, call)
    await this.#deleteIfRemoved(disk.id, call)
  }

  /** Copies a snapshot's volume. The disk gets its marks when its content is complete. */
  async #restore(disk: DiskSpec & { source: { id: string } }, known: FoundVolume | undefined, call: Call) {
    const { id, sizeGib, source } = disk
    if (known?.config[marks.id]) return this.#write(known, id, call, {})
    await requireNotRemoved(this.#ctx, id, call)
    const state = this.#copyState(id)
    if (state === 'running' || (await this.#work.isRunning(volumeName(id), call.signal))) return
    if (!known && state === 'none')
      return this.#beginRestore(disk, await this.#captures.volumeOf(source.id, call.signal))
    this.#work.forget(id)
    const copied = known ?? (await this.#volume(id, call.signal))
    if (!copied) throw noSuchDisk(id)
    await this.#write(copied, id, call, { [marks.id]: id, ...sizeConfig(sizeGib) })
    await this.#deleteIfRemoved(id, call)
  }

  #copyState(id: string) {
    try {
      return this.#work.state(id)
    } catch (error) {
      throw copyError(error)
    }
  }

  #beginRestore(
    { id, sizeGib, source, type }: DiskSpec & { source: { id: string } },
    { pool, location: member }: { pool: string; location: string },
  ): void {
    const { instanceType } = this.#ctx.config
    const contentType = instanceType === 'virtual-machine' ? 'block' : 'filesystem'
    const copied = { pool, name: copyName(source.id) }
    const body = copyRequest(this.#ctx, volumeName(id), copied, contentType, sizeGib)
    const path = volumesPath(poolOf(this.#ctx.config, type))
    const query = isMember(member) ? { query: { target: member } } : {}
    this.#work.begin(id, (limits) => this.#ctx.client.change('POST', path, body, { ...limits, ...query }))
  }

  /**
   * Ensures that a VM on this host can use the disk, and returns the disk's pool. The first VM of a local
   * disk determines the member that has the disk.
   */
  async place(disk: DiskSpec, host: string, { signal }: Call): Promise<string> {
    const volume = await this.#volume(disk.id, signal)
    const pool = volume?.pool ?? poolOf(this.#ctx.config, disk.type)
    const isLocal = await isPoolLocal(this.#ctx, pool, signal)
    if (volume && isLocal && volume.location !== host)
      throw new EngineError('rejected', `disk ${disk.id} is on ${volume.location}, but the VM is on ${host}`)
    if (volume) return pool
    const unplaced = isLocal ? await findProfile(this.#ctx, volumeName(disk.id), signal) : undefined
    if (!unplaced) throw noSuchDisk(disk.id)
    const { sizeGib, generation } = statusOf(unplaced)
    await this.#create({ ...disk, sizeGib }, host, { generation, signal })
    await this.#deleteIfRemoved(disk.id, { generation, signal })
    await removeProfile(this.#ctx, volumeName(disk.id), signal)
    return pool
  }

  async placeAll({ disks, host }: Pick<VmSpec, 'disks' | 'host'>, call: Call): Promise<DiskPools> {
    const pools: DiskPools = new Map()
    for (const disk of disks) pools.set(disk.id, await this.place(disk, host, call))
    return pools
  }

  async grow(disk: DiskSpec, call: Call): Promise<void> {
    const known = await this.#findNotNewer(disk.id, call)
    const found = known ?? (await this.#findUnplaced(disk.id, call.signal))
    if (!found) throw noSuchDisk(disk.id)
    const isLarger = disk.sizeGib > statusOf(found).sizeGib
    if (known) await this.#write(known, disk.id, call, isLarger ? sizeConfig(disk.sizeGib) : {})
    else await this.#writeUnplaced(disk.id, call, isLarger ? sizeRecord(disk.sizeGib) : {})
  }

  async remove(disk: DiskRef, call: Call): Promise<void> {
    if (!(await this.#findNotNewer(disk.id, call)))
      requireNotNewer(disk.id, await this.#findUnplaced(disk.id, call.signal), call)
    await recordRemoval(this.#ctx, disk.id, call)
    await this.#delete(disk.id, call.signal)
  }

  async find({ id }: DiskRef, signal: AbortSignal): Promise<DiskStatus | null> {
    const volume = await this.#volume(id, signal)
    const found = volume ?? (await this.#findUnplaced(id, signal))
    // A volume without marks is still being copied.
    if (volume && !volume.config[marks.id]) return { id, generation: 0, sizeGib: 0, isCopying: true }
    if (!found && this.#copyState(id) === 'running') return { id, generation: 0, sizeGib: 0, isCopying: true }
    return found ? statusOf(found) : null
  }

  async list(signal: AbortSignal): Promise<DiskStatus[]> {
    const query = { recursion: '1' }
    const pools = diskPools(this.#ctx.config)
    const [volumes, profiles] = await Promise.all([
      Promise.all(pools.map((pool) => this.#ctx.client.get<Volume[]>(volumesPath(pool), { signal, query }))),
      this.#hasLocalPool(signal).then((isLocal) => (isLocal ? listProfiles(this.#ctx, signal) : [])),
    ])
    const unplaced = profiles.filter(({ name }) => name.startsWith(volumeName('')))
    // A disk that is being placed has a profile and a volume; it is listed once, as a volume.
    const found = [...unplaced, ...volumes.flat()].filter(({ config }) => config[marks.id]).map(statusOf)
    return [...new Map(found.map((disk) => [disk.id, disk])).values()]
  }

  #volume(id: string, signal: AbortSignal) {
    return findVolume<Volume>(this.#ctx, volumeName(id), signal)
  }

  async #hasLocalPool(signal: AbortSignal): Promise<boolean> {
    const pools = diskPools(this.#ctx.config)
    const areLocal = await Promise.all(pools.map((pool) => isPoolLocal(this.#ctx, pool, signal)))
    return areLocal.includes(true)
  }

  async #findUnplaced(id: string, signal: AbortSignal): Promise<Profile | undefined> {
    return (await this.#hasLocalPool(signal)) ? findProfile(this.#ctx, volumeName(id), signal) : undefined
  }

  /** Throws `stale` if the volume has a newer generation than the call. */
  async #findNotNewer(id: string, call: Call) {
    const found = await this.#volume(id, call.signal)
    requireNotNewer(id, found, call)
    return found
  }

  async #create(disk: DiskSpec, member: string | null, { generation, signal }: Call): Promise<void> {
    const { instanceType } = this.#ctx.config
    const isBlock = instanceType === 'virtual-machine' && disk.type === 'persistent-ssd'
    const body = {
      name: volumeName(disk.id),
      content_type: isBlock ? 'block' : 'filesystem',
      config: { [marks.id]: disk.id, ...sizeConfig(disk.sizeGib), ...generationMark(generation) },
    }
    const options = { signal, timeoutMs: 60_000, ...(member && { query: { target: member } }) }
    await this.#ctx.client.create(volumesPath(poolOf(this.#ctx.config, disk.type)), body, options)
  }

  /**
   * A concurrent removal may have looked for the disk before it existed. In this case, this call has to
   * remove the disk.
   */
  async #deleteIfRemoved(id: string, call: Call): Promise<void> {
    await requireNotRemoved(this.#ctx, id, call).catch(async (error) => {
      await this.#delete(id, call.signal)
      throw error
    })
  }

  async #write(
    { path }: { path: string },
    id: string,
    call: Call,
    config: Record<string, string>,
  ): Promise<void> {
    const body = { config: { ...config, ...generationMark(call.generation) } }
    await this.#ctx.client.change('PATCH', path, body, { signal: call.signal }).catch((error) => {
      if (saysInUse(error))
        throw new EngineError(
          'rejected',
          `Incus cannot grow disk ${id} while its VM is running: stop the VM, or detach the disk`,
        )
      throw unavailable(error)
    })
  }

  async #writeUnplaced(id: string, call: Call, config: Record<string, string>): Promise<void> {
    const profile = { config, description: 'Slipway: a disk that was never attached' }
    await putProfile(this.#ctx, volumeName(id), id, call, profile).catch((error) => {
      throw unavailable(error)
    })
  }

  async #delete(id: string, signal: AbortSignal): Promise<void> {
    const options = { signal, timeoutMs: 60_000 }
    const volume = await this.#volume(id, signal)
    if (volume)
      await this.#ctx.client.change('DELETE', volume.path, undefined, options).catch((error) => {
        if (isCode(error, 404)) return
        if (isCode(error, 400))
          throw new EngineError('rejected', `disk ${id}: ${error.message}`, { cause: error })
        throw unavailable(error)
      })
    if (await this.#hasLocalPool(signal)) await removeProfile(this.#ctx, volumeName(id), signal)
  }
}

const sizeRecord = (sizeGib: number) => ({ [sizeMark]: String(sizeGib) })
const sizeConfig = (sizeGib: number) => ({ size: `${sizeGib}GiB`, ...sizeRecord(sizeGib) })

const statusOf = ({ config }: Pick<Volume, 'config'>): DiskStatus => ({
  id: config[marks.id] ?? '',
  generation: generationOf({ config }),
  sizeGib: Number(config[sizeMark] ?? 0),
})
