import type { Engines } from '../engines/engine.ts'
import type { Database } from '../postgres/database.ts'
import type { DueTask, DueTasks } from '../services.ts'
import { type DueWork, findDueWork } from '../store/fleet/due.ts'
import { withJitter } from './backoff.ts'

/** The pause between two reads of due work. */
const busyMs = 1_000
/** The pause if no operation is unfinished and nothing was due. */
const quietMs = 2_000

interface Entry extends DueTask {
  notify: () => void
  notifiedAt: number
}

const isDue = ({ kind, turn, everyMs = 0, notifiedAt }: Entry, found: DueWork): boolean =>
  (kind === undefined || found[kind]) &&
  (turn === undefined || found.turns.includes(turn)) &&
  performance.now() - notifiedAt >= everyMs

/**
 * Reads what is due, with one statement every second or two for all parts of a process. Most work begins
 * sooner because of a signal; this class covers work that becomes due at a certain time, and lost signals. It
 * runs while it has listeners.
 */
export class DueWorkWatch implements DueTasks {
  readonly #database: Database
  readonly #engines: Pick<Engines, 'keys'>
  readonly #onError: (error: unknown) => void
  readonly #entries = new Set<Entry>()
  #timer: NodeJS.Timeout | undefined

  /** `engines` are the engines of this process. They change when the locations are reloaded. */
  constructor(database: Database, engines: Pick<Engines, 'keys'>, onError: (error: unknown) => void) {
    this.#database = database
    this.#engines = engines
    this.#onError = onError
  }

  /**
   * Calls `notify` whenever the task is due. The first call ignores the task's pause. Returns an unsubscribe
   * function.
   */
  on(task: DueTask, notify: () => void): () => void {
    const entry = { ...task, notify, notifiedAt: Number.NEGATIVE_INFINITY }
    this.#entries.add(entry)
    this.#timer ??= setTimeout(() => this.#check(), 0).unref()
    return () => this.#entries.delete(entry)
  }

  async #check(): Promise<void> {
    let pauseMs = busyMs
    try {
      const found = await this.#find()
      const due = [...this.#entries].filter((entry) => isDue(entry, found))
      for (const entry of due) {
        entry.notifiedAt = performance.now()
        entry.notify()
      }
      if (due.length === 0 && !found.isBusy) pauseMs = quietMs
    } catch (error) {
      if (this.#entries.size > 0) this.#onError(error)
    }
    this.#timer =
      this.#entries.size > 0 ? setTimeout(() => this.#check(), withJitter(pauseMs)).unref() : undefined
  }

  #find(): Promise<DueWork> {
    const turns = [...this.#entries].flatMap(({ turn, restMs = 0, notifiedAt }) =>
      turn === undefined ? [] : [{ name: turn, restMs: Number.isFinite(notifiedAt) ? restMs : 0 }],
    )
    return findDueWork(this.#database, {
      // Operations that need no engine have the location ''.
      locations: ['', ...this.#engines.keys()],
      turns: turns.map(({ name }) => name),
      restsMs: turns.map(({ restMs }) => restMs),
    })
  }
}
