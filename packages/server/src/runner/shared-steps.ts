import { inSharedTransactions } from '../postgres/batches.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { type Outcome, type Step, Unmet, type Work } from './operation.ts'

/** The most operations in one transaction. */
const maxItems = 32

/** An operation that has reached a step with a shared transaction. */
export interface Sharer {
  work: Work
  /** Writes the outcome. */
  conclude(outcome: Outcome, tx: Tx): Promise<void>
}

/**
 * Runs steps in a transaction that several operations share. If one of them fails, or loses its lease, the transaction is
 * rolled back and each operation runs the step alone.
 */
export class SharedSteps {
  readonly #database: Database
  readonly #runs = new Map<Step, (sharer: Sharer) => Promise<void>>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Resolves when the step's work and its outcome are committed. */
  async take(step: Step, sharer: Sharer): Promise<void> {
    const run = this.#runs.get(step) ?? this.#sharedRun(step)
    this.#runs.set(step, run)
    try {
      await run(sharer)
    } catch (error) {
      if (error instanceof Unmet && step.onUnmet) throw await step.onUnmet(sharer.work)
      throw error
    }
  }

  #sharedRun(step: Step) {
    const work = async (tx: Tx, { work, conclude }: Sharer) => conclude(await step.tx!(work, tx), tx)
    return inSharedTransactions(this.#database, { maxItems, work })
  }
}
