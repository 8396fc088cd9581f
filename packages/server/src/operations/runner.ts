import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import type { Queryable, Tx } from '../store/database.ts'
import {
  advanceOperation,
  type ClaimedOperation,
  claimOperations,
  endOperation,
  type Progress,
  parkOperation,
  renewLeases,
  type StepEntry,
} from '../store/operations.ts'
import { EngineError } from './engine.ts'
import type { Definition, Outcome, Step, Work, Workshop } from './operation.ts'

const pollMs = 1_000
const stepTimeMs = 60_000
const firstPauseMs = 100
const longestPauseMs = 30_000
/** An undo that failed so often waits for an operator, and is tried again only now and then. */
const undoAttempts = 12
const stuckPauseMs = 300_000

/** Thrown inside a step's transaction to roll it back: the lease is gone or the operation was cancelled. */
class LostLease extends Error {}

interface Held {
  row: ClaimedOperation
  leaseToken: string
  abort: AbortController
}

/**
 * Runs operations: claims what is due, one step at a time, under a lease that is renewed while it lives. Whatever a
 * step does to the database commits only together with its outcome and only under a lease that still stands.
 */
export class Runner {
  readonly #workshop: Workshop
  readonly #definitions: Map<string, Definition>
  readonly #held = new Map<string, Held>()
  readonly #stopping = new AbortController()
  #isClaiming = false
  #isWokenAgain = false
  #loops: Promise<void>[] = []
  #running = new Set<Promise<void>>()
  #unsubscribe = () => {}

  constructor(workshop: Workshop, definitions: Definition[]) {
    this.#workshop = workshop
    this.#definitions = new Map(definitions.map((definition) => [definition.kind, definition]))
  }

  start(): void {
    this.#unsubscribe = this.#workshop.signals.on('operations', () => this.#wake())
    this.#loops = [
      this.#every(pollMs, () => this.#wake()),
      this.#every(this.#settings.renewMs, () => this.#renew()),
    ]
    this.#wake()
  }

  /** Takes no more work, and hands back what does not finish by itself in time. */
  async stop(graceMs = 5_000): Promise<void> {
    this.#stopping.abort()
    this.#unsubscribe()
    await Promise.race([Promise.all(this.#running), delay(graceMs)])
    for (const held of this.#held.values()) held.abort.abort()
    await Promise.race([Promise.all(this.#running), delay(1_000)])
    await Promise.all(this.#loops)
  }

  get #settings() {
    return this.#workshop.config.operations
  }

  async #every(ms: number, action: () => unknown): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await delay(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {})
      if (!this.#stopping.signal.aborted) await action()
    }
  }

  /** Claims until nothing is due; wake-ups meanwhile are not lost. */
  async #wake(): Promise<void> {
    this.#isWokenAgain = true
    if (this.#isClaiming) return
    this.#isClaiming = true
    try {
      while (this.#isWokenAgain && !this.#stopping.signal.aborted) {
        this.#isWokenAgain = false
        const most = this.#settings.concurrency - this.#held.size
        if (most <= 0) break
        const leaseToken = uuid()
        const { database } = this.#workshop
        const rows = await claimOperations(
          database,
          leaseToken,
          this.#settings.leaseMs,
          this.#saturated(),
          most,
        )
        for (const row of rows) this.#begin({ row, leaseToken, abort: new AbortController() })
      }
    } catch (error) {
      this.#workshop.log.warn({ err: error }, 'cannot claim operations')
    } finally {
      this.#isClaiming = false
    }
  }

  /** No project holds more than three quarters of the places: a long queue of one never keeps another out. */
  #saturated(): string[] {
    const share = Math.max(1, Math.floor(this.#settings.concurrency * 0.75))
    const counts = new Map<string, number>()
    for (const { row } of this.#held.values())
      counts.set(row.project_id, (counts.get(row.project_id) ?? 0) + 1)
    return [...counts].filter(([, count]) => count >= share).map(([project]) => project)
  }

  #begin(held: Held): void {
    this.#held.set(held.row.id, held)
    const run = this.#run(held)
      .catch((error) => {
        if (!(error instanceof LostLease))
          this.#workshop.log.error({ err: error, operation: held.row.id }, 'operation interrupted')
      })
      .finally(() => {
        this.#held.delete(held.row.id)
        this.#running.delete(run)
        if (!this.#stopping.signal.aborted) this.#wake()
      })
    this.#running.add(run)
  }

  async #renew(): Promise<void> {
    const held = [...this.#held.values()].map(({ row, leaseToken }) => ({ id: row.id, leaseToken }))
    if (held.length === 0) return
    const alive = await renewLeases(this.#workshop.database, held, this.#settings.leaseMs).catch(() => null)
    if (!alive) return
    for (const { id } of held) if (!alive.has(id)) this.#held.get(id)?.abort.abort()
  }

  async #run(held: Held): Promise<void> {
    const definition = this.#definitions.get(held.row.kind)
    if (!definition) throw new Error(`there is no operation called ${held.row.kind}`)
    const attempt = new Attempt(this.#workshop, definition, held)
    while (!this.#stopping.signal.aborted && (await attempt.step())) {
      // One step after the other, under the same lease.
    }
    if (this.#stopping.signal.aborted) await attempt.handBack()
  }
}

/** One claimed operation on its way through its steps. */
class Attempt {
  readonly #workshop: Workshop
  readonly #definition: Definition
  readonly #held: Held
  readonly #claimedAt = performance.now()
  #progress: Progress
  #isOver = false

  constructor(workshop: Workshop, definition: Definition, held: Held) {
    const { row } = held
    this.#workshop = workshop
    this.#definition = definition
    this.#held = held
    this.#progress = {
      step: row.step,
      scratch: row.scratch,
      stepLog: row.step_log,
      attempts: row.attempts,
      lastError: row.last_error,
      isUndoing: row.is_undoing,
      failure: row.failure,
      isStuck: row.is_stuck,
    }
  }

  /** Runs one step or one undo; answers whether there is more to do now. */
  async step(): Promise<boolean> {
    if (this.#held.row.is_cancelled && !this.#progress.isUndoing) await this.#end('FAILED', cancelled)
    else if (this.#progress.isUndoing) await this.#undoStep()
    else await this.#doStep()
    return !this.#isOver
  }

  async handBack(): Promise<void> {
    if (!this.#isOver) await this.#park(this.#progress, 0)
  }

  async #doStep(): Promise<void> {
    const step = this.#definition.steps[this.#progress.step]!
    this.#log(step, 'running')
    if (this.#isPastDeadline() && !this.#definition.isTeardown)
      return this.#settle(step, {
        flow: 'fail',
        ...(step.onDeadline ?? { code: 'engine_error', message: 'It did not finish in time.' }),
      })
    await this.#orBack(
      async () => {
        if (step.tx) await this.#inTx(async (tx) => this.#settle(step, await step.tx!(this.#work(), tx), tx))
        else await this.#settle(step, await this.#timed((work) => step.call!(work)))
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
      return this.#advance({ ...this.#progress, isUndoing: true, failure, attempts: 0 }, db)
    }
    if (outcome.flow === 'next') this.#log(step, 'done')
    const progress = this.#progress
    const scratch = { ...progress.scratch, ...outcome.scratch }
    if (outcome.flow === 'wait') return this.#park({ ...progress, scratch, lastError: '' }, outcome.ms, db)
    return this.#advance({ ...progress, scratch, step: progress.step + 1, attempts: 0, lastError: '' }, db)
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
    const lastError = error instanceof Error ? error.message : String(error)
    this.#workshop.log.warn(
      { err: error, operation: this.#held.row.id, step: step.name, attempts },
      'step failed',
    )
    await this.#park(
      { ...this.#progress, attempts, lastError, isStuck },
      isStuck ? stuckPauseMs : pause(attempts),
    )
  }

  /** Undoes in reverse, the failed step included: it may have done its work before it failed. */
  async #undoStep(): Promise<void> {
    const step = this.#definition.steps[this.#progress.step]!
    await this.#orBack(
      async () => {
        if (step.undoCall) await this.#timed((work) => step.undoCall!(work))
        await this.#inTx(async (tx) => {
          await step.undoTx?.(this.#work(), tx)
          this.#log(step, 'undone')
          if (this.#progress.step === 0) return this.#end('FAILED', this.#progress.failure, tx)
          return this.#advance(
            { ...this.#progress, step: this.#progress.step - 1, attempts: 0, isStuck: false },
            tx,
          )
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
      await work()
    } catch (error) {
      this.#progress = before
      this.#isOver = false
      // Cancelled meanwhile, or the lease is gone; then this throws and nothing more is written.
      if (error instanceof LostLease) await this.#end('FAILED', cancelled)
      else await otherwise(error)
    }
  }

  /** Engine work with a limit of its own: an engine that hangs costs one attempt, not the operation. */
  async #timed<T>(call: (work: Work) => Promise<T>): Promise<T> {
    const signal = AbortSignal.any([this.#held.abort.signal, AbortSignal.timeout(stepTimeMs)])
    const aborted = new Promise<never>((_, reject) =>
      signal.addEventListener(
        'abort',
        () => reject(new EngineError('unavailable', 'the engine did not answer in time')),
        {
          once: true,
        },
      ),
    )
    aborted.catch(() => {})
    return Promise.race([call(this.#work(signal)), aborted])
  }

  #work(signal = this.#held.abort.signal): Work {
    return { operation: this.#held.row, scratch: this.#progress.scratch, workshop: this.#workshop, signal }
  }

  async #advance(progress: Progress, db: Queryable): Promise<void> {
    if (!(await advanceOperation(db, this.#held.row.id, this.#held.leaseToken, progress)))
      throw new LostLease()
    this.#progress = progress
  }

  async #park(progress: Progress, ms: number, db: Queryable = this.#workshop.database): Promise<void> {
    this.#isOver = true
    if (!(await parkOperation(db, this.#held.row.id, this.#held.leaseToken, progress, ms)))
      throw new LostLease()
    if (ms < pollMs) setTimeout(() => this.#workshop.signals.send('operations'), ms).unref()
  }

  async #end(
    state: 'SUCCEEDED' | 'FAILED',
    result: unknown,
    db: Queryable = this.#workshop.database,
  ): Promise<void> {
    const operation = { id: this.#held.row.id, leaseToken: this.#held.leaseToken, eventId: uuid() }
    if (!(await endOperation(db, operation, state, result, this.#progress.stepLog))) throw new LostLease()
    this.#isOver = true
    const tell = () => {
      for (const topic of ['ended', 'events', 'operations'] as const) this.#workshop.signals.send(topic)
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
    const log = [...this.#progress.stepLog]
    const at = log.findIndex(({ name }) => name === step.name)
    const begun = at >= 0 ? log[at]! : { name: step.name, state, started_at: now, completed_at: '' }
    const entry = { ...begun, state, completed_at: state === 'running' ? '' : now }
    if (at >= 0) log[at] = entry
    else log.push(entry)
    this.#progress = { ...this.#progress, stepLog: log }
  }
}

const cancelled = { code: 'cancelled', message: 'The resource is being deleted.' }

function pause(attempts: number): number {
  return Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempts, 12)) * (0.75 + Math.random() / 2)
}
