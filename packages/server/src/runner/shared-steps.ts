import { Batches } from '../store/batches.ts'
import { type Ending, endAllOperations } from '../store/compute/operations.ts'
import type { Database, Tx } from '../store/database.ts'
import { type Outcome, type Step, Unexplained, type Work } from './operation.ts'

/** So many at most are in one transaction. */
const most = 32

/** An operation that has come to a step which operations take together. */
export interface Sharer {
  work: Work
  /** Returns the ending that the outcome means, or writes what it means instead. */
  conclude(outcome: Outcome, tx: Tx): Promise<Ending | undefined>
}

/**
 * Steps that operations take together: one transaction for all that came while the one before was under way. If it fails
 * for any of them, a lost lease included, nothing of it was written, and each takes the step by itself.
 */
export class SharedSteps {
  readonly #database: Database
  readonly #batches = new Map<Step, Batches<Sharer, undefined>>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Resolves when the step's work and its outcome are committed. */
  take(step: Step, sharer: Sharer): Promise<undefined> {
    let batches = this.#batches.get(step)
    if (!batches) {
      batches = new Batches({ work: (sharers) => this.#run(step, sharers), conflictsOf: () => [], most })
      this.#batches.set(step, batches)
    }
    return batches.submit(sharer)
  }

  async #run(step: Step, sharers: Sharer[]): Promise<undefined[]> {
    const committed = this.#database.transaction(async (tx) => {
      const works = sharers.map(({ work }) => work)
      const outcomes = await step.txAll!(works, tx)
      const endings: Ending[] = []
      for (const [index, { conclude }] of sharers.entries()) {
        const ending = await conclude(outcomes[index]!, tx)
        if (ending) endings.push(ending)
      }
      await endAllOperations(tx, endings)
    })
    await committed.catch(async (error) => {
      throw error instanceof Unexplained ? await error.why() : error
    })
    return sharers.map(() => undefined)
  }
}
