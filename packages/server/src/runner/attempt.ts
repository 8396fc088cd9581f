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
import { backoffMs } from './backoff.ts'
import { withinLimit } from './limit.ts'
import { cancelled, type Definition, next, type Outcome, type Work } from './operation.ts'
import type { SharedSteps } from './shared-steps.ts'
import { noteStep } from './step-log.ts'
import { emitStuck } from './stuck.ts'

/** Sooner than this, a parked operation is woken by its own process instead of the look for due work. */
const soonMs = 2_000
/** An undo that failed so often waits for an operator, and is tried again only now and then. */
const undoAttempts = 12
const stuckPauseMs = 300_000
/** An engine that hangs costs one attempt of this length, not the operation. */
const longestStepMs = 60_000
/** Engine work that is done so soon is not noted step by step: doing it again does no harm. */
const quickMs = 250
const late = { code: 'engine_error', message: 'It did not finish in time.' } as const

/**
 * The one place where an operation's time limit is decided: its own, or the operator's for VMs. What was under way when a
 * backup was written has none: it may have ended well long ago, and must not be undone.
 */
function deadlineMs({ deadlineS }: Definition, { config }: Services): number {
  const { restored, vmDeadlineS } = config.operations
  if (restored) return Number.POSITIVE_INFINITY
  return 1000 * (deadlineS === 'configured' ? vmDeadlineS : deadlineS)
}

/** The code of an error that trying again would not help. */
function refusalCode(error: unknown, { config }: Services): FailureCode | undefined {
  if (error instanceof Failure && error.code !== 'unavailable') return error.code
  if (!(error instanceof EngineError) || error.kind === 'unavailable') return undefined
  // A restored store has yet to take over what its engines have seen.
  return error.kind === 'stale' && config.operations.restored ? undefined : 'engine_error'
}

/** One claimed operation on its way through its steps. */
export class Attempt {
  readonly lease: Lease
  /** Given up when the lease is lost or the process stops. */
  readonly engineWork = new AbortController()
  row: ClaimedOperation
  readonly #services: Services
  readonly #shared: SharedSteps
  readonly #alone: Tx
  readonly #definition: Definition
  readonly #deadline: number
  readonly #claimedAt = performance.now()
  #notedAt = performance.now()
  #progress: Progress
  /** Engine work of an earlier attempt may still be under way somewhere. */
  #needsFence: boolean
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
    this.#alone = services.database.withoutTransaction
    this.#definition = definition
    this.#deadline = row.started_at.getTime() + deadlineMs(definition, services)
    this.row = row
    this.#progress = row
    this.#needsFence = row.was_held || row.attempts > 0 || services.config.operations.restored
  }

  /** One step after the other, until it is over or waits, or the process stops: then it is handed back. */
  async run(stopping: AbortSignal): Promise<void> {
    while (!this.#isOver && !stopping.aborted) await this.#turn()
    if (!this.#isOver) await this.#park(this.#progress, 0)
  }

  /** One step or one undo. */
  #turn(): Promise<void> {
    const before = [this.#progress, this.#needsFence, false] as const
    return this.#act()
      .catch((error) => {
        // What was noted in memory counts only if it got through: its transaction may not have committed.
        ;[this.#progress, this.#needsFence, this.#isOver] = before
        if (error instanceof LostLease) throw error
        return this.#failed(error)
      })
      .catch((error) => {
        if (!(error instanceof LostLease)) throw error
        // Cancelled meanwhile, or the lease is gone; then this throws and nothing more is written.
        return this.#end('FAILED', cancelled)
      })
  }

  async #act(): Promise<void> {
    if (this.row.is_cancelled) return this.#end('FAILED', cancelled)
    if (this.#needsFence) {
      // From here on the engine refuses what earlier attempts, of this or another worker, may still send. Admissions
      // take these locks in the other order: in a transaction, a deadlock is tried again.
      const generation = await this.#services.database.transaction((tx) => fenceOperation(tx, this.lease))
      this.row = { ...this.row, generation }
      this.#needsFence = false
      return
    }
    return this.#progress.is_undoing ? this.#undo() : this.#do()
  }

  async #do(): Promise<void> {
    const { tx: write, isShared, call, onDeadline } = this.#step
    this.#log('running')
    if (this.#now > this.#deadline && !this.#definition.isTeardown)
      return this.#conclude({ flow: 'fail', ...(onDeadline ?? late) })
    if (isShared)
      return this.#shared.take(this.#step, {
        work: this.#work(),
        conclude: (outcome, tx) => this.#conclude(outcome, tx),
      })
    if (!write) return this.#conclude(call ? await this.#timed(call) : next())
    await this.#services.database.transaction(async (tx) => this.#conclude(await write(this.#work(), tx), tx))
  }

  /** Undoes in reverse, the failed step included: it may have done its work before it failed. */
  async #undo(): Promise<void> {
    const { undoCall, undoTx } = this.#step
    if (undoCall) await this.#timed(undoCall)
    await this.#services.database.transaction(async (tx) => {
      await undoTx?.(this.#work(), tx)
      this.#log('undone')
      if (this.#progress.step === 0) return this.#end('FAILED', this.#progress.failure, tx)
      const back = { step: this.#progress.step - 1, attempts: 0, is_stuck: false }
      return this.#advance({ ...this.#progress, ...back }, tx)
    })
  }

  /** Writes an outcome, in the step's own transaction if it has one. */
  async #conclude(outcome: Outcome, tx = this.#alone): Promise<void> {
    if (outcome.flow !== 'wait') this.#log(outcome.flow === 'fail' ? 'failed' : 'done')
    if (outcome.flow === 'done') return this.#end('SUCCEEDED', outcome.result, tx)
    const progress = this.#progress
    if (outcome.flow === 'fail') {
      const failure = { code: outcome.code, message: outcome.message }
      this.#needsFence = true
      return this.#advance({ ...progress, is_undoing: true, failure, attempts: 0 }, tx)
    }
    const scratch = { ...progress.scratch, ...outcome.scratch }
    const noted = { ...progress, scratch, last_error: '', is_stuck: false }
    if (outcome.flow === 'wait') return this.#park(noted, outcome.ms, tx)
    const further = { ...noted, step: progress.step + 1, attempts: 0 }
    if (this.#step.tx || performance.now() - this.#notedAt > quickMs) return this.#advance(further, tx)
    this.#progress = further
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#needsFence) throw error
    const message = error instanceof Error ? error.message : String(error)
    const { is_undoing, attempts } = this.#progress
    const isTeardown = this.#definition.isTeardown === true
    if (is_undoing) return this.#again(error, message, attempts + 1 >= undoAttempts)
    // A teardown is tried until it holds, whatever is in its way.
    const refusal = isTeardown ? undefined : refusalCode(error, this.#services)
    if (refusal) return this.#conclude({ flow: 'fail', code: refusal, message })
    return this.#again(error, message, isTeardown && this.#now > this.#deadline)
  }

  async #again(err: unknown, last_error: string, is_stuck: boolean): Promise<void> {
    const attempts = this.#progress.attempts + 1
    this.#services.log.warn({ err, operation: this.row.id, step: this.#step.name, attempts }, 'step failed')
    const isNews = is_stuck && !this.#progress.is_stuck
    await this.#services.database.transaction(async (tx) => {
      const progress = { ...this.#progress, attempts, last_error, is_stuck }
      await this.#park(progress, is_stuck ? stuckPauseMs : backoffMs(attempts), tx)
      if (isNews) await emitStuck(tx, this.row, this.#step)
    })
  }

  async #advance(progress: Progress, tx: Tx): Promise<void> {
    await advanceOperation(tx, this.lease, progress)
    this.#progress = progress
    this.#notedAt = performance.now()
  }

  async #park(progress: Progress, ms: number, tx = this.#alone): Promise<void> {
    await parkOperation(tx, this.lease, progress, ms)
    this.#isOver = true
    if (ms < soonMs) setTimeout(() => this.#services.signals.wake('operations'), ms).unref()
  }

  async #end(state: 'SUCCEEDED' | 'FAILED', result: unknown, tx = this.#alone): Promise<void> {
    await endOperation(tx, { ...this.lease, state, result, stepLog: this.#progress.step_log })
    this.#isOver = true
  }

  get #step() {
    return this.#definition.steps[this.#progress.step]!
  }

  /** The service's time: what the database said at the claim, and what has passed since. */
  get #now(): number {
    return this.row.now.getTime() + (performance.now() - this.#claimedAt)
  }

  #timed<T>(call: (work: Work) => Promise<T>): Promise<T> {
    const { stepMs = longestStepMs } = this.#services
    return withinLimit(this.engineWork.signal, stepMs, (signal) => call(this.#work(signal)))
  }

  #work(signal = this.engineWork.signal): Work {
    const { scratch } = this.#progress
    const { ahead } = this.row
    return { operation: this.row, scratch, ahead, nowMs: this.#now, services: this.#services, signal }
  }

  #log(state: StepEntry['state']): void {
    this.#progress = noteStep(this.#progress, this.#step.name, state, this.#now)
  }
}
