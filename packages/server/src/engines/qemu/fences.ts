import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError, staleCall } from '../engine.ts'
import { readJson, writeJson } from './files.ts'
import type { StatePaths } from './paths.ts'

interface Fence {
  generation: number
  firewallGeneration: number
  removedAtMs: number | null
}

const unknown: Fence = { generation: 0, firewallGeneration: -1, removedAtMs: null }
const removalRetentionMs = 7 * 24 * 3600 * 1000

/**
 * The highest generation seen for every id, kept for a week after the object is removed. Callers hold the
 * id's lock.
 */
export class Fences {
  readonly #paths: StatePaths

  constructor(paths: StatePaths) {
    this.#paths = paths
  }

  /** Returns 0 for an unknown id. */
  async generation(id: string): Promise<number> {
    return (await this.#read(id)).generation
  }

  /** Throws `stale` for an older generation, and for a `make` with the generation that removed the object. */
  async check(id: string, generation: number, purpose: 'make' | 'change' | 'remove'): Promise<void> {
    const fence = await this.#read(id)
    if (generation < fence.generation) throw staleCall(id, generation, fence.generation)
    if (purpose === 'make' && fence.removedAtMs && generation === fence.generation)
      throw new EngineError('stale', `${id} was removed at generation ${generation}`)
  }

  /** Records a generation that passed the check, for an object that exists or is about to be created. */
  async remember(id: string, generation: number): Promise<void> {
    const fence = await this.#read(id)
    if (fence.generation === generation && !fence.removedAtMs) return
    await this.#write(id, { ...fence, generation, removedAtMs: null })
  }

  async advanceFirewall(id: string, generation: number): Promise<void> {
    const fence = await this.#read(id)
    const { firewallGeneration: newest } = fence
    if (generation < newest) throw staleCall(`the firewall of ${id}`, generation, newest)
    if (generation > newest) await this.#write(id, { ...fence, firewallGeneration: generation })
  }

  async markRemoved(id: string, generation: number): Promise<void> {
    await this.#write(id, { ...(await this.#read(id)), generation, removedAtMs: Date.now() })
  }

  async deleteExpired(): Promise<void> {
    for (const name of await readdir(this.#paths.fences).catch(() => [])) {
      const file = join(this.#paths.fences, name)
      const fence = await readJson<Fence>(file).catch(() => null)
      if (fence?.removedAtMs && Date.now() - fence.removedAtMs > removalRetentionMs)
        await rm(file, { force: true })
    }
  }

  async #read(id: string): Promise<Fence> {
    return (await readJson<Fence>(this.#paths.fence(id))) ?? unknown
  }

  async #write(id: string, fence: Fence): Promise<void> {
    await mkdir(this.#paths.fences, { recursive: true, mode: 0o700 })
    await writeJson(this.#paths.fence(id), fence)
  }
}
