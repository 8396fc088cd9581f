import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readText } from '../files.ts'

export interface Limits {
  memoryMib: number
  processes: number
  cpuCores: number
}

const root = '/sys/fs/cgroup'
const controllers = ['memory', 'pids', 'cpu']
const leaveLimitMs = 1_000

/**
 * The cgroups of one location's VMs. With cgroup version 2, they are at the top level, because a cgroup with
 * processes cannot enable controllers such as memory for the cgroups in it. With version 1, they are in this
 * process's own cgroup of each of the three controllers.
 */
export class Cgroups {
  /** Paths by controller; version 2 has one path for all controllers. */
  readonly #parents: Record<string, string>
  readonly #version: 1 | 2

  private constructor(parents: Record<string, string>, version: 1 | 2) {
    this.#parents = parents
    this.#version = version
  }

  /** Returns null if cgroups cannot be created: without root, or in a container without them. */
  static async open(name: string): Promise<Cgroups | null> {
    const isUnified = (await readText(join(root, 'cgroup.controllers'))) !== null
    const own = (await readText('/proc/self/cgroup')) ?? ''
    const parentOf = (controller: string) =>
      isUnified ? join(root, name) : join(root, controller, pathIn(own, controller), name)
    const parents = Object.fromEntries(controllers.map((controller) => [controller, parentOf(controller)]))
    const groups = new Cgroups(parents, isUnified ? 2 : 1)
    try {
      await groups.ensureLimited('probe', { memoryMib: 64, processes: 8, cpuCores: 1 })
      await groups.remove('probe')
      return groups
    } catch {
      return null
    }
  }

  /**
   * Creates the VM's cgroup if it is missing, and sets its limits. A process joins the cgroup by writing its
   * pid to the returned files.
   */
  async ensureLimited(vmId: string, { memoryMib, processes, cpuCores }: Limits): Promise<string[]> {
    const procsFiles = await this.ensure(vmId)
    const memoryBytes = `${memoryMib * 1024 ** 2}`
    const weight = Math.min(10_000, 100 * cpuCores)
    const values: Record<string, string> =
      this.#version === 2
        ? { 'memory.max': memoryBytes, 'pids.max': `${processes}`, 'cpu.weight': `${weight}` }
        : {
            'memory.limit_in_bytes': memoryBytes,
            'pids.max': `${processes}`,
            'cpu.shares': `${Math.min(262_144, 1024 * cpuCores)}`,
          }
    for (const [file, value] of Object.entries(values))
      await writeFile(join(this.#parents[file.split('.')[0]!]!, vmId, file), value)
    return procsFiles
  }

  /**
   * Creates the cgroup without limits, for processes that start before QEMU. `ensureLimited` sets the limits
   * later.
   */
  async ensure(vmId: string): Promise<string[]> {
    if (this.#version === 2) await this.#delegate()
    for (const folder of this.#folders(vmId)) await mkdir(folder, { recursive: true })
    return this.#folders(vmId).map((folder) => join(folder, 'cgroup.procs'))
  }

  /**
   * A cgroup can be removed only after its last process has exited. A cgroup that remains is reused, or
   * removed later.
   */
  async remove(vmId: string): Promise<void> {
    const until = Date.now() + leaveLimitMs
    for (const folder of this.#folders(vmId))
      while (await failsAsBusy(rmdir(folder))) {
        if (Date.now() > until) return
        await sleep(20)
      }
    // Removes the parents, unless other VMs still use them.
    for (const parent of new Set(Object.values(this.#parents))) await failsAsBusy(rmdir(parent))
  }

  async #delegate(): Promise<void> {
    const wanted = controllers.map((controller) => `+${controller}`).join(' ')
    const parent = this.#parents.memory!
    await writeFile(join(root, 'cgroup.subtree_control'), wanted)
    await mkdir(parent, { recursive: true })
    await writeFile(join(parent, 'cgroup.subtree_control'), wanted)
  }

  #folders(vmId: string): string[] {
    return [...new Set(Object.values(this.#parents))].map((parent) => join(parent, vmId))
  }
}

/** Returns this process's cgroup of a version 1 controller, from a line such as `4:memory:/some/group`. */
function pathIn(own: string, controller: string): string {
  const line = own.split('\n').find((entry) => entry.split(':')[1]?.split(',').includes(controller))
  return line?.split(':').slice(2).join(':') ?? '/'
}

/** Returns whether the removal failed because the cgroup is in use. Ignores other errors. */
function failsAsBusy(removal: Promise<void>): Promise<boolean> {
  return removal.then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EBUSY',
  )
}
