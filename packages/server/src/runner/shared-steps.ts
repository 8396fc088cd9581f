import { inSharedTransactions } from '../postgres/batches.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { type Outcome, type Step, UnexpectedState, type Work } from './operation.ts'

/** The maximum number of operations in one transaction. */
const maxItems = 32

/** An operation that has reached a step with a shared transaction. */
export interface SharedOperation {
  work: Work
  /** Writes the outcome. */
  conclude(outcome: Outcome, tx: Tx): Promise<void>
}

/**
 * Runs steps in a transaction that several operations share. If one operation fails or loses its lease, the transaction is
 * rolled back, and each operation runs the step alone.
 */
export class SharedSteps {
  readonly #database: Database
  readonly #runs = new Map<Step, (operation: SharedOperation) => Promise<void>>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Resolves when the step's work and its outcome are committed. */
  async run(step: Step, operation: SharedOperation): Promise<void> {
    const run = this.#runs.get(step) ?? this.#sharedRun(step)
    this.#runs.set(step, run)
    try {
      await run(operation)
    } catch (error) {
      if (error instanceof UnexpectedState && step.onUnexpectedState)
        throw await step.onUnexpectedState(operation.work)
      throw error
    }
  }

  #sharedRun(step: Step) {
    const work = async (tx: Tx, { work, conclude }: SharedOperation) => conclude(await step.tx!(work, tx), tx)
    return inSharedTransactions(this.#database, { maxItems, work })
  }
}
