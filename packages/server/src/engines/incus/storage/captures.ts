import {
  type Call,
  type CaptureRef,
  type CaptureSpec,
  type CaptureStatus,
  EngineError,
  noSuchDisk,
  type VmRef,
} from '../../engine.ts'
import type { BackgroundWork } from '../background.ts'
import { isCode, isDuplicate, unavailable } from '../client.ts'
import type { IncusContext } from '../context.ts'
import { saysFull } from '../error-texts.ts'
import {
  findInstance,
  generationOf,
  instancePath,
  isOn,
  marks,
  requireInstance,
  volumeName,
} from '../instances.ts'
import {
  findProfile,
  listProfiles,
  type Profile,
  putProfile,
  removeProfile,
  requireNotNewer,
} from '../profiles.ts'
import { recordRemoval, requireNotRemoved } from '../removals.ts'
import { findVolume, volumesPath } from './pools.ts'

type Result = NonNullable<CaptureStatus['result']>

/** What a copy's profile contains. */
interface Copy {
  kind: CaptureSpec['kind']
  consistency: Result['consistency']
  sizeGib: number
  /** The path of the snapshot that the copy is made from, which is removed afterwards; '' if there is none. */
  snapshot: string
  /** The body of the request that creates the copy, and the member that has the source. */
  request: Record<string, unknown>
  member: string
  /** The pool of the source and of the copy; undefined for images, and for copies that earlier versions made. */
  pool?: string
  result: Result | null
}

interface Volume {
  location: string
  content_type: string
}

const copyMark = 'user.slipway.copy'
export const copyName = (id: string) => `copy-${id}`

/**
 * Copies of disks. A copy of an instance is an image. A copy of a volume is a separate volume, because
 * deleting a volume also deletes its snapshots. A profile with the copy's name records the progress of the
 * copy. Incus cannot freeze a guest.
 */
export class Captures {
  readonly #ctx: IncusContext
  readonly #work: BackgroundWork

  constructor(ctx: IncusContext, work: BackgroundWork) {
    this.#ctx = ctx
    this.#work = work
  }

  async ensure(capture: CaptureSpec, call: Call): Promise<void> {
    const { id } = capture
    const found = await findProfile(this.#ctx, copyName(id), call.signal)
    requireNotNewer(id, found, call)
    if (!found) await requireNotRemoved(this.#ctx, id, call)
    const started = found ? copyOf(found) : await this.#begin(capture, call.signal)
    if (!found || generationOf(found) < call.generation) await this.#write(id, started, call)
    if (!found) await this.#deleteIfRemoved(id, started, call)
    if (started.result || !(await this.#isComplete(id, started, call.signal))) return
    const result = await this.#resultOf(id, started, call.signal)
    if (started.snapshot)
      await this.#ctx.client.remove(started.snapshot, { signal: call.signal, timeoutMs: 60_000 })
    await this.#write(id, { ...started, result }, call)
    this.#work.forget(id)
  }

  async remove({ id }: CaptureRef, call: Call): Promise<void> {
    const found = await findProfile(this.#ctx, copyName(id), call.signal)
    requireNotNewer(id, found, call)
    await recordRemoval(this.#ctx, id, call)
    await this.#delete(id, found ? copyOf(found) : null, call.signal)
  }

  async find({ id }: CaptureRef, signal: AbortSignal): Promise<CaptureStatus | null> {
    const found = await findProfile(this.#ctx, copyName(id), signal)
    return found ? { id, generation: generationOf(found), result: copyOf(found).result } : null
  }

  async list(signal: AbortSignal): Promise<Pick<CaptureStatus, 'id' | 'generation'>[]> {
    const profiles = await listProfiles(this.#ctx, signal)
    return profiles
      .filter(({ name, config }) => name.startsWith(copyName('')) && config[marks.id])
      .map((profile) => ({ id: profile.config[marks.id]!, generation: generationOf(profile) }))
  }

  /** Returns the pool and the member that have the volume of a complete copy. */
  async volumeOf(id: string, signal: AbortSignal): Promise<Volume & { pool: string }> {
    const volume = await findVolume<Volume>(this.#ctx, copyName(id), signal)
    if (!volume) throw new EngineError('missing', `no such image or snapshot: ${id}`)
    return volume
  }

  /** Takes the snapshot that determines the copy's point in time. */
  async #begin(capture: CaptureSpec, signal: AbortSignal): Promise<Copy> {
    const { id, kind, from, sizeGib } = capture
    const common = { kind, sizeGib, result: null }
    if (kind === 'image' && from.kind !== 'vm')
      throw new EngineError('rejected', 'with Incus, an image can be created only from a VM')
    if (from.kind === 'vm') {
      const instance = await requireInstance(this.#ctx, from.vm.id, signal)
      const consistency = consistencyOf(capture, isOn(instance))
      const snapshots = `${instancePath(from.vm.id)}/snapshots`
      await this.#snapshot(snapshots, { name: copyName(id), stateful: false }, signal)
      const source = { type: 'snapshot', name: `${instance.name}/${copyName(id)}` }
      const request = { source, compression_algorithm: 'none', aliases: [{ name: copyName(id) }] }
      return { ...common, consistency, snapshot: `${snapshots}/${copyName(id)}`, request, member: '' }
    }
    const name = from.kind === 'disk' ? volumeName(from.disk.id) : copyName(from.snapshot.id)
    const volume = await findVolume<Volume>(this.#ctx, name, signal)
    if (!volume)
      throw from.kind === 'disk'
        ? noSuchDisk(from.disk.id)
        : new EngineError('missing', `no such snapshot: ${from.snapshot.id}`)
    const { path, pool } = volume
    const isBusy = from.kind === 'disk' && from.vm !== null && (await this.#isOn(from.vm, signal))
    const consistency = consistencyOf(capture, isBusy)
    const isFromSnapshot = from.kind === 'snapshot'
    if (!isFromSnapshot) await this.#snapshot(`${path}/snapshots`, { name: copyName(id) }, signal)
    const source = { pool, name: isFromSnapshot ? name : `${name}/${copyName(id)}` }
    const request = copyRequest(this.#ctx, copyName(id), source, volume.content_type, sizeGib)
    const snapshot = isFromSnapshot ? '' : `${path}/snapshots/${copyName(id)}`
    return { ...common, consistency, snapshot, request, member: volume.location, pool }
  }

  async #isOn({ id }: VmRef, signal: AbortSignal): Promise<boolean> {
    const instance = await findInstance(this.#ctx, id, signal)
    return instance !== undefined && isOn(instance)
  }

  async #snapshot(path: string, body: object, signal: AbortSignal): Promise<void> {
    await this.#ctx.client.change('POST', path, body, { signal, timeoutMs: 60_000 }).catch((error) => {
      if (!isDuplicate(error)) throw copyError(error)
    })
  }

  /** Begins the copy unless it is in progress or complete, and returns whether it is complete. */
  async #isComplete(id: string, copy: Copy, signal: AbortSignal): Promise<boolean> {
    const state = this.#stateOf(id)
    if (state !== 'none') return state === 'done'
    if (await this.#work.isRunning(copyName(id), signal)) return false
    if (await this.#exists(id, copy, signal)) return true
    const path =
      copy.kind === 'image' ? '/1.0/images' : volumesPath(copy.pool ?? this.#ctx.config.storagePool)
    const query = isMember(copy.member) ? { query: { target: copy.member } } : {}
    this.#work.begin(id, (limits) =>
      this.#ctx.client.change('POST', path, copy.request, { ...limits, ...query }),
    )
    return false
  }

  #stateOf(id: string): 'none' | 'running' | 'done' {
    try {
      return this.#work.state(id)
    } catch (error) {
      throw copyError(error)
    }
  }

  async #exists(id: string, { kind }: Copy, signal: AbortSignal): Promise<boolean> {
    const found =
      kind === 'image'
        ? await this.#ctx.client.find(aliasPath(id), { signal })
        : await findVolume(this.#ctx, copyName(id), signal)
    return found !== undefined
  }

  async #resultOf(id: string, { kind, consistency, sizeGib }: Copy, signal: AbortSignal): Promise<Result> {
    if (kind === 'image') {
      const { target } = await this.#ctx.client.get<{ target: string }>(aliasPath(id), { signal })
      const { size } = await this.#ctx.client.get<{ size: number }>(`/1.0/images/${target}`, { signal })
      return { storedBytes: size, consistency, source: { fingerprint: target } }
    }
    const path = `${(await findVolume(this.#ctx, copyName(id), signal))?.path}/state`
    const state = await this.#ctx.client.find<{ usage: { used: number } | null }>(path, { signal })
    // Some pools do not report how much space a volume uses, but it is at most the volume's size.
    const storedBytes = state?.usage?.used || sizeGib * 1024 ** 3
    return { storedBytes, consistency, source: { volume: copyName(id) } }
  }

  async #delete(id: string, copy: Copy | null, signal: AbortSignal): Promise<void> {
    this.#work.forget(id)
    const options = { signal, timeoutMs: 60_000 }
    if (await this.#work.isRunning(copyName(id), signal))
      throw new EngineError('unavailable', 'Incus is still copying')
    const alias = await this.#ctx.client.find<{ target: string }>(aliasPath(id), { signal })
    if (alias) await this.#ctx.client.remove(`/1.0/images/${alias.target}`, options)
    const volume = await findVolume(this.#ctx, copyName(id), signal)
    if (volume) await this.#ctx.client.remove(volume.path, options)
    if (copy?.snapshot) await this.#ctx.client.remove(copy.snapshot, options)
    await removeProfile(this.#ctx, copyName(id), signal)
  }

  /** A concurrent removal may have looked for the copy before it existed. */
  async #deleteIfRemoved(id: string, copy: Copy, call: Call): Promise<void> {
    await requireNotRemoved(this.#ctx, id, call).catch(async (error) => {
      await this.#delete(id, copy, call.signal)
      throw error
    })
  }

  async #write(id: string, copy: Copy, call: Call): Promise<void> {
    const profile = { config: { [copyMark]: JSON.stringify(copy) }, description: 'Slipway: a copy of a disk' }
    await putProfile(this.#ctx, copyName(id), id, call, profile).catch((error) => {
      throw unavailable(error)
    })
  }
}

/** The request that copies a volume, without the marks of its source. */
export const copyRequest = (
  { config }: Pick<IncusContext, 'config'>,
  name: string,
  source: { pool: string; name: string },
  contentType: string,
  sizeGib: number,
) => ({
  name,
  type: 'custom',
  content_type: contentType,
  config: { size: `${sizeGib}GiB` },
  source: {
    type: 'copy',
    ...source,
    project: config.project,
    volume_only: true,
  },
})

/** Returns whether a location names a member of a cluster. */
export const isMember = (location: string) => location !== '' && location !== 'none'

function consistencyOf({ mustFreeze }: CaptureSpec, isRunning: boolean): Result['consistency'] {
  if (!isRunning) return 'off'
  if (mustFreeze) throw new EngineError('unfrozen', 'Incus cannot freeze the file systems of a guest')
  return 'crash'
}

/** If the pool is full, the error is `rejected`, because a retry a moment later would fail too. */
export function copyError(error: unknown): Error {
  if (saysFull(error))
    return new EngineError('rejected', 'no space left in the storage pool', { cause: error })
  if (isCode(error, 404)) return new EngineError('missing', error.message, { cause: error })
  return unavailable(error)
}

const aliasPath = (id: string) => `/1.0/images/aliases/${copyName(id)}`
const copyOf = ({ config }: Profile): Copy => JSON.parse(config[copyMark] ?? '{}') as Copy
