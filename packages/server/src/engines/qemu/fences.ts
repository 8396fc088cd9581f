import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../engine.ts'
import { readJson, writeJson } from './files.ts'
import type { StatePaths } from './paths.ts'

interface Fence {
  generation: number
  firewallGeneration: number
  removedAtMs: number | null
}

const keptAfterRemovalMs = 7 * 24 * 3600 * 1000

/** The highest generation seen of every id, kept for a week past removal. Callers hold the id's lock. */
export class Fences {
  readonly #paths: StatePaths

  constructor(paths: StatePaths) {
    this.#paths = paths
  }

  async read(id: string): Promise<Fence | null> {
    return readJson<Fence>(this.#paths.fence(id))
  }

  /** Throws `stale` for a call that comes too late; `make` cannot bring back what was removed by its own generation. */
  async check(id: string, generation: number, purpose: 'make' | 'change' | 'remove'): Promise<void> {
    const fence = await this.read(id)
    if (!fence) return
    if (generation < fence.generation)
      throw new EngineError('stale', `${id}: generation ${generation} comes after ${fence.generation}`)
    if (purpose === 'make' && fence.removedAtMs && generation === fence.generation)
      throw new EngineError('stale', `${id}: removed at generation ${generation}`)
  }

  /** Remembers a generation that passed the check, for something that exists or is about to. */
  async remember(id: string, generation: number): Promise<void> {
    const fence = await this.read(id)
    if (fence?.generation === generation && !fence.removedAtMs) return
    await this.#write(id, { firewallGeneration: -1, ...fence, generation, removedAtMs: null })
  }

  async passFirewall(id: string, generation: number): Promise<void> {
    const fence = await this.read(id)
    const highest = fence?.firewallGeneration ?? -1
    if (generation < highest)
      throw new EngineError('stale', `${id}: firewall generation ${generation} comes after ${highest}`)
    if (generation > highest)
      await this.#write(id, { generation: 0, removedAtMs: null, ...fence, firewallGeneration: generation })
  }

  async markRemoved(id: string, generation: number): Promise<void> {
    const fence = await this.read(id)
    await this.#write(id, { firewallGeneration: -1, ...fence, generation, removedAtMs: Date.now() })
  }

  async forgetLongRemoved(): Promise<void> {
    for (const name of await readdir(this.#paths.fences).catch(() => [])) {
      const file = join(this.#paths.fences, name)
      const fence = await readJson<Fence>(file).catch(() => null)
      if (fence?.removedAtMs && Date.now() - fence.removedAtMs > keptAfterRemovalMs)
        await rm(file, { force: true })
    }
  }

  async #write(id: string, fence: Fence): Promise<void> {
    await mkdir(this.#paths.fences, { recursive: true, mode: 0o700 })
    await writeJson(this.#paths.fence(id), fence)
  }
}
