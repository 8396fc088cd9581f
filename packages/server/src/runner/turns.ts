import { uuid } from '../domain/ids.ts'
import { extendLease, releaseLeases, takeLease } from '../postgres/leases.ts'
import type { Services } from '../services.ts'

/** How long a task rests after it has worked: so many times as long as it took, but no longer than that. */
interface Rest {
  factor: number
  longestMs: number
}

const restAfter = (tookMs: number, everyMs: number, rest?: Rest): number =>
  rest ? Math.max(everyMs, Math.min(tookMs * rest.factor, rest.longestMs)) : everyMs

export interface Turn {
  /** A task that all processes share, or one shard of it. */
  name: string
  /** No other process does it again sooner. */
  everyMs: number
  rest?: Rest
}

/**
 * Tasks that processes divide among themselves: each turn of each task goes to one of those who ask for it when it is
 * due. A process that dies in the middle of a turn is succeeded when its lease runs out.
 */
export class Turns {
  readonly #services: Pick<Services, 'database' | 'config' | 'log'>
  readonly #holder = uuid()

  constructor(services: Pick<Services, 'database' | 'config' | 'log'>) {
    this.#services = services
  }

  /**
   * Does `work` if it is this process's turn; returns whether it was. The signal falls when the lease is lost: another
   * process is at it then, so what is left undone is in good hands.
   */
  async take(turn: Turn, work: (signal: AbortSignal) => Promise<unknown>): Promise<boolean> {
    const { database, config } = this.#services
    const { name, everyMs, rest } = turn
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
      await extendLease(database, { ...lease, ms: restAfter(performance.now() - begun, everyMs, rest) })
    }
    return true
  }

  /** Lets others have at once what this process had. */
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
