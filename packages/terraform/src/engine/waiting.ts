import { setTimeout as pause } from 'node:timers/promises'
import type { RouteId } from '@slipway/contract'
import { ApiError, isApiError, type Operation } from '@slipway/sdk'
import { isValues, type Values } from '../values/types.ts'
import { type Problem, ProblemError } from './diagnostics.ts'
import { defaultDuration, durationMs } from './duration.ts'
import { type CallParts, projectOf, type Session } from './session.ts'

/** The pause grows by this step each time a request is rejected again. */
const pauseStepMs = 250
const maxPauseMs = 5_000

/** Sends the requests of one apply and waits for operations. The resource's timeout limits the total wait. */
export class Waiter {
  readonly #session: Session
  readonly #state: Values
  readonly #limit: string
  readonly #endsAt: number

  constructor(session: Session, state: Values, verb: 'create' | 'update' | 'delete') {
    const limits = isValues(state.timeouts ?? null) ? (state.timeouts as Values) : {}
    const duration = typeof limits[verb] === 'string' ? limits[verb] : defaultDuration
    this.#session = session
    this.#state = state
    this.#limit = `${duration} (timeouts.${verb})`
    this.#endsAt = Date.now() + durationMs(duration)
  }

  /**
   * Sends a request. If an operation in progress blocks it, waits until that operation has ended and sends
   * the request again. Throws every other error.
   */
  async send(route: RouteId, parts: CallParts): Promise<Values> {
    for (let tries = 0; ; tries++)
      try {
        return (await this.#session.call(route, parts)) as Values
      } catch (error) {
        if (!isApiError(error) || error.blockingOperationId === undefined) throw error
        await this.#awaitBlocker(error, error.blockingOperationId, Math.min(tries * pauseStepMs, maxPauseMs))
      }
  }

  /**
   * Waits for an operation. If interrupted, returns a warning that the operation continues in the service.
   */
  async end(operation: Operation): Promise<Problem[]> {
    const name = `The ${operation.metadata.operation_name} operation ${operation.operation_id}`
    try {
      await this.#wait(operation.operation_id)
      return []
    } catch (error) {
      if (this.#session.signal.aborted)
        return [interrupted(`${name} continues. The next plan shows its result.`, { isWarning: true })]
      if (!hasTimedOut(error)) throw error
      const message = `${name} did not end within ${this.#limit}. The operation continues.`
      throw new ApiError({ code: 'timed_out', message, operation })
    }
  }

  async #awaitBlocker(refusal: ApiError, operationId: string, pauseMs: number): Promise<void> {
    const { signal } = this.#session
    try {
      await pause(pauseMs, undefined, { signal })
      await this.#wait(operationId)
    } catch (error) {
      if (signal.aborted) throw new ProblemError(interrupted(`${refusal.message} Nothing was changed.`))
      const hasFailed = isApiError(error) && error.operation?.state === 'FAILED'
      // A failed operation has ended too. If the operation cannot be read, report the original error.
      if (!hasFailed && !hasTimedOut(error)) throw refusal
    }
    if (Date.now() < this.#endsAt) return
    const message = `${refusal.message} The provider stopped waiting after ${this.#limit}.`
    const { code, status, requestId } = refusal
    throw new ApiError({ code, status, requestId, message, cause: refusal })
  }

  #wait(operationId: string): Promise<unknown> {
    const { client, signal } = this.#session
    const target = { project_id: projectOf(this.#session, this.#state.project_id) }
    return client.wait(target, operationId, { signal, timeoutMs: this.#endsAt - Date.now() })
  }
}

const hasTimedOut = (error: unknown) =>
  isApiError(error) && error.code === 'timed_out' && error.operation !== undefined

const interrupted = (detail: string, more: Partial<Problem> = {}): Problem => ({
  summary: 'Interrupted while waiting',
  detail,
  ...more,
})
