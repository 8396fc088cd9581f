import type { Database } from '../postgres/database.ts'
import type { DueTask, DueTasks } from '../services.ts'
import { type DueWork, findDueWork } from '../store/fleet/due.ts'

/** How often the store is asked for due work. */
const busyMs = 1_000
/** The same while no operation is unfinished and nothing was due. */
const quietMs = 2_000

interface Entry extends DueTask {
  tell: () => void
  toldAt: number
}

const isDue = ({ kind, turn, everyMs = 0, toldAt }: Entry, found: DueWork): boolean =>
  (kind === undefined || found[kind]) &&
  (turn === undefined || found.turns.includes(turn)) &&
  performance.now() - toldAt >= everyMs

/**
 * Finds out what there is to do: one statement a second or two tells all parts of a process. Most work begins sooner, by a
 * signal; this is for what becomes due by time, and for signals that were lost. It looks as long as it has listeners.
 */
export class DueWorkWatch implements DueTasks {
  readonly #database: Database
  readonly #locations: string[]
  readonly #onError: (error: unknown) => void
  readonly #entries = new Set<Entry>()
  #timer: NodeJS.Timeout | undefined

  /** `locations` are those that this process has engines for. */
  constructor(database: Database, locations: string[], onError: (error: unknown) => void) {
    this.#database = database
    // Operations that need no engine have the location ''.
    this.#locations = ['', ...locations]
    this.#onError = onError
  }

  /** Calls `tell` at every look that finds the task due, for the first time without its rest. Returns what ends it. */
  on(task: DueTask, tell: () => void): () => void {
    const entry = { ...task, tell, toldAt: Number.NEGATIVE_INFINITY }
    this.#entries.add(entry)
    this.#timer ??= setTimeout(() => this.#look(), 0).unref()
    return () => this.#entries.delete(entry)
  }

  async #look(): Promise<void> {
    let pauseMs = busyMs
    try {
      const found = await this.#find()
      const due = [...this.#entries].filter((entry) => isDue(entry, found))
      for (const entry of due) {
        entry.toldAt = performance.now()
        entry.tell()
      }
      if (due.length === 0 && !found.isBusy) pauseMs = quietMs
    } catch (error) {
      if (this.#entries.size > 0) this.#onError(error)
    }
    // Processes that began together do not look at the same moments for long.
    const jitter = 0.75 + Math.random() / 2
    this.#timer =
      this.#entries.size > 0 ? setTimeout(() => this.#look(), pauseMs * jitter).unref() : undefined
  }

  #find(): Promise<DueWork> {
    const turns = [...this.#entries].flatMap(({ turn, restMs = 0, toldAt }) =>
      turn === undefined ? [] : [{ name: turn, restMs: Number.isFinite(toldAt) ? restMs : 0 }],
    )
    return findDueWork(this.#database, {
      locations: this.#locations,
      turns: turns.map(({ name }) => name),
      restsMs: turns.map(({ restMs }) => restMs),
    })
  }
}
