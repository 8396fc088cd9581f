import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import type { Queryable, Tx } from '../store/database.ts'
import { emitEvent } from '../store/events.ts'
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

const firstPauseMs = 100
const longestPauseMs = 30_000
/** Sooner than this, a parked operation is woken by its own process instead of the poll. */
const soonMs = 1_000
/** An undo that failed so often waits for an operator, and is tried again only now and then. */
const undoAttempts = 12
const stuckPauseMs = 300_000
/** Engine work that is done so soon is not noted step by step: doing it again does no harm. */
const quickMs = 250

/** Thrown inside a step's transaction to roll it back: the lease is gone or the operation was cancelled. */
export class LostLease extends Error {}

type Ending = 'SUCCEEDED' | 'FAILED'

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
    const { row } = held
    this.#workshop = workshop
    this.#definition = definition
    this.#held = held
    this.#stepMs = stepMs
    this.#needsFence = row.was_held || row.attempts > 0
    this.#progress = row
  }

  /** Runs one step or one undo; answers whether there is more to do now. */
  async step(): Promise<boolean> {
    if (this.#held.row.is_cancelled) await this.#end('FAILED', cancelled)
    else if (this.#needsFence) await this.#fence()
    else if (this.#progress.is_undoing) await this.#undoStep()
    else await this.#doStep()
    return !this.#isOver
  }

  async handBack(): Promise<void> {
    if (!this.#isOver) await this.#park(this.#progress, 0)
  }

  /** From here on the engine refuses what earlier attempts, of this or another worker, may still send. */
  async #fence(): Promise<void> {
    await this.#orBack(
      () =>
        this.#inTx(async (tx) => {
          const generation = await fenceOperation(tx, this.#held.row.id, this.#held.leaseToken)
          if (generation === undefined) throw new LostLease()
          this.#held.row = { ...this.#held.row, generation }
          this.#needsFence = false
        }),
      (error) => Promise.reject(error),
    )
  }

  async #doStep(): Promise<void> {
    const step = this.#definition.steps[this.#progress.step]!
    this.#log(step, 'running')
    const isTooLate = this.#isPastDeadline() && !this.#definition.isTeardown
    await this.#orBack(
      async () => {
        if (isTooLate) await this.#settle(step, { flow: 'fail', ...(step.onDeadline ?? late) })
        else if (step.tx)
          await this.#inTx(async (tx) => this.#settle(step, await step.tx!(this.#work(), tx), tx))
        else await this.#settle(step, step.call ? await this.#timed(step.call) : next())
      },
      (error) => this.#failed(step, error),
    )
  }

  /** Writes an outcome, in the step's own transaction if it has one. */
  async #settle(step: Step, outcome: Outcome, db: Queryable = this.#workshop.database): Promise<void> {
    if (outcome.flow === 'done') {
      this.#log(step, 'done')
      return this.#end('SUCCEEDED', outcome.result, db)
    }
    if (outcome.flow === 'fail') {
      this.#log(step, 'failed')
      const failure = { code: outcome.code, message: outcome.message }
      await this.#advance({ ...this.#progress, is_undoing: true, failure, attempts: 0 }, db)
      this.#needsFence = true
      return
    }
    if (outcome.flow === 'next') this.#log(step, 'done')
    const progress = this.#progress
    const scratch = { ...progress.scratch, ...outcome.scratch }
    if (outcome.flow === 'wait') return this.#park({ ...progress, scratch, last_error: '' }, outcome.ms, db)
    const further = { ...progress, scratch, step: progress.step + 1, attempts: 0, last_error: '' }
    if (step.tx || performance.now() - this.#notedAt > quickMs) return this.#advance(further, db)
    this.#progress = further
  }

  async #failed(step: Step, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error)
    if (error instanceof Failure) return this.#settle(step, { flow: 'fail', code: error.code, message })
    if (error instanceof EngineError && error.kind !== 'unavailable' && !this.#definition.isTeardown)
      return this.#settle(step, { flow: 'fail', code: 'engine_error', message })
    return this.#again(step, error, this.#definition.isTeardown === true && this.#isPastDeadline())
  }

  async #again(step: Step, error: unknown, isStuck: boolean): Promise<void> {
    const attempts = this.#progress.attempts + 1
    const last_error = error instanceof Error ? error.message : String(error)
    const at = { operation: this.#held.row.id, step: step.name, attempts }
    this.#workshop.log.warn({ err: error, ...at }, 'step failed')
    const isNews = isStuck && !this.#progress.is_stuck
    const progress = { ...this.#progress, attempts, last_error, is_stuck: isStuck }
    await this.#inTx(async (tx) => {
      await this.#park(progress, isStuck ? stuckPauseMs : pause(attempts), tx)
      if (isNews) await this.#tellOfBeingStuck(tx, step)
    })
  }

  #tellOfBeingStuck(tx: Tx, step: Step): Promise<void> {
    const { id, name, project_id, resource_type, resource_id } = this.#held.row
    tx.afterCommit(() => this.#workshop.signals.send('events'))
    return emitEvent(tx, {
      type: 'operation.stuck',
      resourceType: resource_type,
      resourceId: resource_id,
      projectId: project_id,
      actor: 'system',
      requestId: '',
      data: { operation_id: id, operation_name: name, step: step.name },
    })
  }

  /** Undoes in reverse, the failed step included: it may have done its work before it failed. */
  async #undoStep(): Promise<void> {
    const step = this.#definition.steps[this.#progress.step]!
    await this.#orBack(
      async () => {
        if (step.undoCall) await this.#timed(step.undoCall)
        await this.#inTx(async (tx) => {
          await step.undoTx?.(this.#work(), tx)
          this.#log(step, 'undone')
          if (this.#progress.step === 0) return this.#end('FAILED', this.#progress.failure, tx)
          const back = { step: this.#progress.step - 1, attempts: 0, is_stuck: false }
          return this.#advance({ ...this.#progress, ...back }, tx)
        })
      },
      (error) => this.#again(step, error, this.#progress.attempts + 1 >= undoAttempts),
    )
  }

  #inTx(work: (tx: Tx) => Promise<void>): Promise<void> {
    return this.#workshop.database.transaction(work)
  }

  /** What `work` noted in memory counts only if it got through: its transaction may not have committed. */
  async #orBack(work: () => Promise<void>, otherwise: (error: unknown) => Promise<void>): Promise<void> {
    const before = this.#progress
    try {
      await work().catch((error) => {
        this.#progress = before
        this.#isOver = false
        if (error instanceof LostLease) throw error
        return otherwise(error)
      })
    } catch (error) {
      if (!(error instanceof LostLease)) throw error
      // Cancelled meanwhile, or the lease is gone; then this throws and nothing more is written.
      await this.#end('FAILED', cancelled)
    }
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
    return {
      operation: this.#held.row,
      scratch: this.#progress.scratch,
      nowMs: this.#now(),
      workshop: this.#workshop,
      signal,
    }
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

  async #end(state: Ending, result: unknown, db: Queryable = this.#workshop.database): Promise<void> {
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

  #log(step: Step, state: StepEntry['state']): void {
    const now = new Date(Math.round(this.#now())).toISOString()
    const log = [...this.#progress.step_log]
    const at = log.findIndex(({ name }) => name === step.name)
    const begun = at >= 0 ? log[at]! : { name: step.name, state, started_at: now, completed_at: '' }
    const entry = { ...begun, state, completed_at: state === 'running' ? '' : now }
    if (at >= 0) log[at] = entry
    else log.push(entry)
    this.#progress = { ...this.#progress, step_log: log }
  }
}

const late = { code: 'engine_error', message: 'It did not finish in time.' } as const
const cancelled = { code: 'cancelled', message: 'The resource is being deleted.' }

function pause(attempts: number): number {
  return Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempts, 12)) * (0.75 + Math.random() / 2)
}
