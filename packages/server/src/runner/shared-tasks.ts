import { uuid } from '../domain/ids.ts'
import { extendLease, releaseLeases, takeLease } from '../postgres/leases.ts'
import type { Services } from '../services.ts'

/** A task pauses for `factor` times the duration of its last run, but at most `longestMs`. */
interface Rest {
  factor: number
  longestMs: number
}

const restAfter = (tookMs: number, everyMs: number, rest?: Rest): number =>
  rest ? Math.max(everyMs, Math.min(tookMs * rest.factor, rest.longestMs)) : everyMs

export interface SharedTask {
  /** The name of a task that all processes share, or of one shard of it. */
  name: string
  /** The shortest pause until any process runs the task again. */
  everyMs: number
  /** Read after each run, because the pause may depend on the result of the run. */
  rest?: Rest | undefined
}

/**
 * Tasks that processes share. Each run of a task is done by one process. If that process dies, another
 * process takes over when the lease expires.
 */
export class SharedTasks {
  readonly #services: Pick<Services, 'database' | 'config' | 'log'>
  readonly #holder = uuid()

  constructor(services: Pick<Services, 'database' | 'config' | 'log'>) {
    this.#services = services
  }

  /**
   * Runs `work` if it is due and no other process is running it; returns whether it ran. The signal aborts
   * when the lease is lost, because another process may then take over the work.
   */
  async runIfDue(task: SharedTask, work: (signal: AbortSignal) => Promise<unknown>): Promise<boolean> {
    const { database, config } = this.#services
    const { name, everyMs } = task
    const { leaseMs, renewMs } = config.operations
    const lease = { name, holder: this.#holder, ms: leaseMs }
    if (!(await takeLease(database, lease))) return false
    const begun = performance.now()
    const lost = new AbortController()
    const renewal = setInterval(() => void this.#renew(lease, lost), renewMs).unref()
    try {
      await work(lost.signal)
    } finally {
      clearInterval(renewal)
      await extendLease(database, { ...lease, ms: restAfter(performance.now() - begun, everyMs, task.rest) })
    }
    return true
  }

  /** Releases the leases of this process, so that other processes can run its tasks immediately. */
  async release(): Promise<void> {
    await releaseLeases(this.#services.database, this.#holder)
  }

  async #renew(lease: { name: string; holder: string; ms: number }, lost: AbortController): Promise<void> {
    try {
      if (!(await extendLease(this.#services.database, lease))) lost.abort()
    } catch (err) {
      this.#services.log.warn({ err, task: lease.name }, 'lease not renewed')
    }
  }
}
