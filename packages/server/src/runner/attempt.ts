import type { FailureCode } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import { EngineError } from '../engines/engine.ts'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { endOperation } from '../store/compute/operation-changes.ts'
import {
  advanceOperation,
  type ClaimedOperation,
  fenceOperation,
  type Lease,
  LostLease,
  type Progress,
  parkOperation,
} from '../store/compute/operation-leases.ts'
import type { StepEntry } from '../store/compute/operation-row.ts'
import { emit } from '../store/events/events.ts'
import { backoffMs } from './backoff.ts'
import { withinLimit } from './limit.ts'
import { cancelled, type Definition, next, type Outcome, type Work } from './operation.ts'
import type { SharedSteps } from './shared-steps.ts'
import { logStep } from './step-log.ts'

/**
 * If an operation waits for less than this time, this process wakes it with a timer. Longer waits end when
 * due work is read.
 */
const soonMs = 2_000
/** After this many failures, an undo is stuck: it waits for an operator and is retried at long intervals. */
const undoAttempts = 12
const stuckPauseMs = 300_000
/** The time limit of one attempt of a step. */
const longestStepMs = 60_000
/**
 * If engine work took less time than this, its progress is not written, because repeating the work is
 * harmless.
 */
const quickMs = 250
const late = { code: 'engine_error', message: 'The operation did not finish in time.' } as const

/**
 * In a restored store, operations have no deadline: an operation that was unfinished when the backup was made may have
 * succeeded afterwards, and must not be undone.
 */
function deadlineMs({ deadlineS }: Definition, { config }: Services): number {
  const { restored, vmDeadlineS } = config.operations
  if (restored) return Number.POSITIVE_INFINITY
  return 1000 * (deadlineS === 'configured' ? vmDeadlineS : deadlineS)
}

/** Returns the code of an error that a retry cannot fix; undefined for other errors. */
function refusalCode(error: unknown, { config }: Services): FailureCode | undefined {
  if (error instanceof Failure && error.code !== 'unavailable') return error.code
  if (!(error instanceof EngineError) || error.kind === 'unavailable') return undefined
  // A stale call is retried while a restored database has not yet adopted the generations of its engines.
  return error.kind === 'stale' && config.operations.restored ? undefined : 'engine_error'
}

/** Runs the steps of one claimed operation. */
export class Attempt {
  readonly lease: Lease
  /** Aborts when the lease is lost or the process stops. */
  readonly engineWork = new AbortController()
  row: ClaimedOperation
  readonly #services: Services
  readonly #shared: SharedSteps
  readonly #withoutTransaction: Tx
  readonly #definition: Definition
  readonly #deadline: number
  readonly #claimedAt = performance.now()
  #writtenAt = performance.now()
  #progress: Progress
  /** True if engine work of an earlier attempt may still be in progress. */
  #needsFence: boolean
  /** True if the operation has ended, or waits without a lease. */
  #isOver = false

  constructor(
    services: Services,
    shared: SharedSteps,
    definition: Definition,
    row: ClaimedOperation,
    token: string,
  ) {
    this.lease = { id: row.id, token }
    this.#services = services
    this.#shared = shared
    this.#withoutTransaction = services.database.withoutTransaction
    this.#definition = definition
    this.#deadline = row.started_at.getTime() + deadlineMs(definition, services)
    this.row = row
    this.#progress = row
    this.#needsFence = row.was_held || row.attempts > 0 || services.config.operations.restored
  }

  /**
   * Runs steps until the operation ends or waits. If the process stops, the lease is released, so that
   * another worker continues.
   */
  async run(stopping: AbortSignal): Promise<void> {
    while (!this.#isOver && !stopping.aborted) await this.#runStep()
    if (!this.#isOver) await this.#park(this.#progress, 0)
  }

  /** Runs one step or one undo. */
  #runStep(): Promise<void> {
    const before = [this.#progress, this.#needsFence, false] as const
    return this.#act()
      .catch((error) => {
        // The transaction may not have committed, so restore the earlier values.
        ;[this.#progress, this.#needsFence, this.#isOver] = before
        if (error instanceof LostLease) throw error
        return this.#handleFailure(error)
      })
      .catch((error) => {
        if (!(error instanceof LostLease)) throw error
        // `LostLease` is also thrown if the operation was cancelled. If the lease is lost, `#end` throws again and
        // writes nothing.
        return this.#end('FAILED', cancelled)
      })
  }

  async #act(): Promise<void> {
    if (this.row.is_cancelled) return this.#end('FAILED', cancelled)
    if (this.#needsFence) {
      // From now on, the engine rejects calls of earlier attempts by this or another worker. Admissions take
      // these locks in the opposite order, so a transaction is retried after a deadlock.
      const generation = await this.#services.database.transaction((tx) => fenceOperation(tx, this.lease))
      this.row = { ...this.row, generation }
      this.#needsFence = false
      return
    }
    return this.#progress.is_undoing ? this.#undo() : this.#do()
  }

  async #do(): Promise<void> {
    const { tx: write, isShared, call, onDeadline, graceS = 0 } = this.#step
    this.#log('running')
    if (this.#now > this.#deadline + 1000 * graceS && !this.#definition.isRetriedNotUndone)
      return this.#conclude({ flow: 'fail', ...(onDeadline ?? late) })
    if (isShared)
      return this.#shared.run(this.#step, {
        work: this.#work(),
        conclude: (outcome, tx) => this.#conclude(outcome, tx),
      })
    if (!write) return this.#conclude(call ? await this.#callWithLimit(call) : next())
    await this.#services.database.transaction(async (tx) => this.#conclude(await write(this.#work(), tx), tx))
  }

  /**
   * Undoes the steps in reverse order. This includes the failed step, because it may have done its work
   * before it failed.
   */
  async #undo(): Promise<void> {
    const { undoCall, undoTx } = this.#step
    if (undoCall) await this.#callWithLimit(undoCall)
    await this.#services.database.transaction(async (tx) => {
      await undoTx?.(this.#work(), tx)
      this.#log('undone')
      if (this.#progress.step === 0) return this.#end('FAILED', this.#progress.failure, tx)
      const back = { step: this.#progress.step - 1, attempts: 0, is_stuck: false }
      return this.#advance({ ...this.#progress, ...back }, tx)
    })
  }

  /** Writes the outcome in the step's own transaction, if it has one. */
  async #conclude(outcome: Outcome, tx = this.#withoutTransaction): Promise<void> {
    if (outcome.flow !== 'wait') this.#log(outcome.flow === 'fail' ? 'failed' : 'done')
    if (outcome.flow === 'done') return this.#end('SUCCEEDED', outcome.result, tx)
    const progress = this.#progress
    if (outcome.flow === 'fail') {
      const failure = { code: outcome.code, message: outcome.message }
      this.#needsFence = true
      return this.#advance({ ...progress, is_undoing: true, failure, attempts: 0 }, tx)
    }
    const scratch = { ...progress.scratch, ...outcome.scratch }
    const updated = { ...progress, scratch, last_error: '', is_stuck: false }
    if (outcome.flow === 'wait') return this.#park(updated, outcome.ms, tx)
    const advanced = { ...updated, step: progress.step + 1, attempts: 0 }
    if (this.#step.tx || performance.now() - this.#writtenAt > quickMs) return this.#advance(advanced, tx)
    this.#progress = advanced
  }

  async #handleFailure(error: unknown): Promise<void> {
    if (this.#needsFence) throw error
    const message = error instanceof Error ? error.message : String(error)
    const { is_undoing, attempts } = this.#progress
    const isRetriedNotUndone = this.#definition.isRetriedNotUndone === true
    if (is_undoing) return this.#retry(error, message, attempts + 1 >= undoAttempts)
    const refusal = isRetriedNotUndone ? undefined : refusalCode(error, this.#services)
    if (refusal) return this.#conclude({ flow: 'fail', code: refusal, message })
    return this.#retry(error, message, isRetriedNotUndone && this.#now > this.#deadline)
  }

  async #retry(err: unknown, last_error: string, is_stuck: boolean): Promise<void> {
    const attempts = this.#progress.attempts + 1
    this.#services.log.warn(
      { err, operation: this.row.id, step: this.#step.name, attempts },
      'step failed, will retry',
    )
    const isNewlyStuck = is_stuck && !this.#progress.is_stuck
    await this.#services.database.transaction(async (tx) => {
      const progress = { ...this.#progress, attempts, last_error, is_stuck }
      await this.#park(progress, is_stuck ? stuckPauseMs : backoffMs(attempts), tx)
      if (!isNewlyStuck) return
      const { id, name, project_id, resource_type, resource_id } = this.row
      await emit(tx, {
        type: 'operation.stuck',
        resourceType: resource_type,
        resourceId: resource_id,
        projectId: project_id,
        data: { operation_id: id, operation_name: name, step: this.#step.name },
      })
    })
  }

  async #advance(progress: Progress, tx: Tx): Promise<void> {
    await advanceOperation(tx, this.lease, progress)
    this.#progress = progress
    this.#writtenAt = performance.now()
  }

  async #park(progress: Progress, ms: number, tx = this.#withoutTransaction): Promise<void> {
    await parkOperation(tx, this.lease, progress, ms)
    this.#isOver = true
    if (ms < soonMs) setTimeout(() => this.#services.signals.wake('operations'), ms).unref()
  }

  async #end(state: 'SUCCEEDED' | 'FAILED', result: unknown, tx = this.#withoutTransaction): Promise<void> {
    await endOperation(tx, { ...this.lease, state, result, stepLog: this.#progress.step_log })
    this.#isOver = true
  }

  get #step() {
    return this.#definition.steps[this.#progress.step]!
  }

  /** The service's time: the database's time at the claim plus the time that has passed since. */
  get #now(): number {
    return this.row.now.getTime() + (performance.now() - this.#claimedAt)
  }

  #callWithLimit<T>(call: (work: Work) => Promise<T>): Promise<T> {
    const { stepMs = longestStepMs } = this.#services
    return withinLimit(this.engineWork.signal, stepMs, (signal) => call(this.#work(signal)))
  }

  #work(signal = this.engineWork.signal): Work {
    const { scratch, failure } = this.#progress
    const { prefetched } = this.row
    return {
      operation: this.row,
      scratch,
      failure,
      prefetched,
      nowMs: this.#now,
      services: this.#services,
      signal,
    }
  }

  #log(state: StepEntry['state']): void {
    this.#progress = logStep(this.#progress, this.#step.name, state, this.#now)
  }
}
