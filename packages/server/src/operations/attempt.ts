import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import type { Queryable, Tx } from '../store/database.ts'
import {
  advanceOperation,
  type ClaimedOperation,
  endOperation,
  fenceOperation,
  type Progress,
  parkOperation,
  type StepEntry,
} from '../store/operations.ts'
import { EngineError } from './engine.ts'
import { type Definition, next, type Outcome, type Step, type Work, type Workshop } from './operation.ts'
import { noteStep } from './step-log.ts'
import { tellOfBeingStuck } from './stuck.ts'

const firstPauseMs = 100
const longestPauseMs = 30_000
/** Sooner than this, a parked operation is woken by its own process instead of the poll. */
const soonMs = 1_000
/** An undo that failed so often waits for an operator, and is tried again only now and then. */
const undoAttempts = 12
const stuckPauseMs = 300_000
/** Engine work that is done so soon is not noted step by step: doing it again does no harm. */
const quickMs = 250
const late = { code: 'engine_error', message: 'It did not finish in time.' } as const
const cancelled = { code: 'cancelled', message: 'The resource is being deleted.' }

/** Thrown inside a step's transaction to roll it back: the lease is gone or the operation was cancelled. */
export class LostLease extends Error {}

export interface Held {
  row: ClaimedOperation
  leaseToken: string
  abort: AbortController
}

/** One claimed operation on its way through its steps. */
export class Attempt {
  readonly #workshop: Workshop
  readonly #definition: Definition
  readonly #held: Held
  readonly #stepMs: number
  readonly #claimedAt = performance.now()
  #notedAt = performance.now()
  #progress: Progress
  /** Engine work of an earlier attempt may still be under way somewhere. */
  #needsFence: boolean
  #isOver = false

  constructor(workshop: Workshop, definition: Definition, held: Held, stepMs: number) {
    this.#workshop = workshop
    this.#definition = definition
    this.#held = held
    this.#stepMs = stepMs
    this.#needsFence = held.row.was_held || held.row.attempts > 0
    this.#progress = held.row
  }

  /** Runs one step or one undo; answers whether there is more to do now. */
  async step(): Promise<boolean> {
    const [progress, needsFence] = [this.#progress, this.#needsFence]
    try {
      await this.#act().catch((error) => {
        // What was noted in memory counts only if it got through: its transaction may not have committed.
        this.#progress = progress
        this.#needsFence = needsFence
        this.#isOver = false
        if (error instanceof LostLease) throw error
        return this.#failed(error)
      })
    } catch (error) {
      if (!(error instanceof LostLease)) throw error
      // Cancelled meanwhile, or the lease is gone; then this throws and nothing more is written.
      await this.#end('FAILED', cancelled)
    }
    return !this.#isOver
  }

  async handBack(): Promise<void> {
    if (!this.#isOver) await this.#park(this.#progress, 0)
  }

  get #step(): Step {
    return this.#definition.steps[this.#progress.step]!
  }

  #act(): Promise<void> {
    if (this.#held.row.is_cancelled) return this.#end('FAILED', cancelled)
    if (this.#needsFence) return this.#fence()
    return this.#progress.is_undoing ? this.#undo() : this.#do()
  }

  /** From here on the engine refuses what earlier attempts, of this or another worker, may still send. */
  #fence(): Promise<void> {
    return this.#workshop.database.transaction(async (tx) => {
      const generation = await fenceOperation(tx, this.#held.row.id, this.#held.leaseToken)
      if (generation === undefined) throw new LostLease()
      this.#held.row = { ...this.#held.row, generation }
      this.#needsFence = false
    })
  }

  async #do(): Promise<void> {
    const step = this.#step
    this.#log('running')
    if (this.#isPastDeadline() && !this.#definition.isTeardown)
      return this.#settle({ flow: 'fail', ...(step.onDeadline ?? late) })
    if (step.tx)
      return this.#workshop.database.transaction(async (tx) =>
        this.#settle(await step.tx!(this.#work(), tx), tx),
      )
    return this.#settle(step.call ? await this.#timed(step.call) : next())
  }

  /** Writes an outcome, in the step's own transaction if it has one. */
  async #settle(outcome: Outcome, db: Queryable = this.#workshop.database): Promise<void> {
    const step = this.#step
    if (outcome.flow !== 'wait') this.#log(outcome.flow === 'fail' ? 'failed' : 'done')
    const progress = this.#progress
    if (outcome.flow === 'done') return this.#end('SUCCEEDED', outcome.result, db)
    if (outcome.flow === 'fail') {
      const failure = { code: outcome.code, message: outcome.message }
      await this.#advance({ ...progress, is_undoing: true, failure, attempts: 0 }, db)
      this.#needsFence = true
      return
    }
    const scratch = { ...progress.scratch, ...outcome.scratch }
    if (outcome.flow === 'wait') return this.#park({ ...progress, scratch, last_error: '' }, outcome.ms, db)
    const further = { ...progress, scratch, step: progress.step + 1, attempts: 0, last_error: '' }
    if (step.tx || performance.now() - this.#notedAt > quickMs) return this.#advance(further, db)
    this.#progress = further
  }

  /** Undoes in reverse, the failed step included: it may have done its work before it failed. */
  async #undo(): Promise<void> {
    const step = this.#step
    if (step.undoCall) await this.#timed(step.undoCall)
    await this.#workshop.database.transaction(async (tx) => {
      await step.undoTx?.(this.#work(), tx)
      this.#log('undone')
      if (this.#progress.step === 0) return this.#end('FAILED', this.#progress.failure, tx)
      const back = { step: this.#progress.step - 1, attempts: 0, is_stuck: false }
      return this.#advance({ ...this.#progress, ...back }, tx)
    })
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#needsFence) throw error
    const message = error instanceof Error ? error.message : String(error)
    const { isTeardown } = this.#definition
    if (this.#progress.is_undoing)
      return this.#again(error, message, this.#progress.attempts + 1 >= undoAttempts)
    if (error instanceof Failure) return this.#settle({ flow: 'fail', code: error.code, message })
    if (error instanceof EngineError && error.kind !== 'unavailable' && !isTeardown)
      return this.#settle({ flow: 'fail', code: 'engine_error', message })
    return this.#again(error, message, isTeardown === true && this.#isPastDeadline())
  }

  async #again(error: unknown, last_error: string, is_stuck: boolean): Promise<void> {
    const attempts = this.#progress.attempts + 1
    const at = { operation: this.#held.row.id, step: this.#step.name, attempts }
    this.#workshop.log.warn({ err: error, ...at }, 'step failed')
    const isNews = is_stuck && !this.#progress.is_stuck
    await this.#workshop.database.transaction(async (tx) => {
      const progress = { ...this.#progress, attempts, last_error, is_stuck }
      await this.#park(progress, is_stuck ? stuckPauseMs : pause(attempts), tx)
      if (isNews) await tellOfBeingStuck(tx, this.#workshop, this.#held.row, this.#step)
    })
  }

  /** Engine work with a limit of its own: an engine that hangs costs one attempt, not the operation. */
  async #timed<T>(call: (work: Work) => Promise<T>): Promise<T> {
    const signal = AbortSignal.any([this.#held.abort.signal, AbortSignal.timeout(this.#stepMs)])
    const aborted = new Promise<never>((_, reject) => {
      const giveUp = () => reject(new EngineError('unavailable', 'the engine did not answer in time'))
      signal.addEventListener('abort', giveUp, { once: true })
    })
    aborted.catch(() => {})
    return Promise.race([call(this.#work(signal)), aborted])
  }

  #work(signal = this.#held.abort.signal): Work {
    const { scratch } = this.#progress
    return { operation: this.#held.row, scratch, nowMs: this.#now(), workshop: this.#workshop, signal }
  }

  async #advance(progress: Progress, db: Queryable): Promise<void> {
    if (!(await advanceOperation(db, this.#held.row.id, this.#held.leaseToken, progress)))
      throw new LostLease()
    this.#progress = progress
    this.#notedAt = performance.now()
  }

  async #park(progress: Progress, ms: number, db: Queryable = this.#workshop.database): Promise<void> {
    if (!(await parkOperation(db, this.#held.row.id, this.#held.leaseToken, progress, ms)))
      throw new LostLease()
    this.#isOver = true
    if (ms < soonMs) setTimeout(() => this.#workshop.signals.send('operations'), ms).unref()
  }

  async #end(
    state: 'SUCCEEDED' | 'FAILED',
    result: unknown,
    db: Queryable = this.#workshop.database,
  ): Promise<void> {
    const operation = { id: this.#held.row.id, leaseToken: this.#held.leaseToken, eventId: uuid() }
    const woken = await endOperation(db, operation, state, result, this.#progress.step_log)
    if (woken === undefined) throw new LostLease()
    this.#isOver = true
    const { signals } = this.#workshop
    const tell = () => {
      signals.send('ended', operation.id)
      signals.send('events')
      if (woken > 0) signals.send('operations')
    }
    if ('afterCommit' in db) (db as Tx).afterCommit(tell)
    else tell()
  }

  #isPastDeadline(): boolean {
    return this.#now() > this.#held.row.deadline_at.getTime()
  }

  /** The service's time: what the database said at the claim, and what has passed since. */
  #now(): number {
    return this.#held.row.now.getTime() + (performance.now() - this.#claimedAt)
  }

  #log(state: StepEntry['state']): void {
    const step_log = noteStep(this.#progress.step_log, this.#step.name, state, this.#now())
    this.#progress = { ...this.#progress, step_log }
  }
}

function pause(attempts: number): number {
  return Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempts, 12)) * (0.75 + Math.random() / 2)
}
