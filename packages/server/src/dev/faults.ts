import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type DevFault, type DevFaultCreate, type FailureCode, routeIds } from '@slipway/contract'
import type { FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { didYouMean, nearest } from '../domain/nearest.ts'
import { EngineError } from '../engines/engine.ts'
import type { Queryable } from '../postgres/database.ts'
import { type Definition, fail, type Outcome, type Step, type Work } from '../runner/operation.ts'
import { withResourceNames } from '../store/compute/resource-names.ts'
import { deleteFaults, insertFault, listFaults, updateFault } from '../store/dev/faults.ts'

const maxFaults = 100
/** How many decisions for operation steps are kept in memory. */
const maxDecisions = 10_000
const message = 'This failure was requested with /_dev/faults.'

/** Set during the call of a step with a fault that makes the engine lie or forget. */
export const engineFault = new AsyncLocalStorage<'lie' | 'forget'>()

/** The active faults. They are kept in memory, and written to the database so that they survive a restart. */
export class Faults {
  readonly #db: Queryable
  readonly #steps: Map<string, string[]>
  /** A step is called again while it waits; all its calls share the decision of the first one. */
  readonly #decisions = new Map<string, DevFault | null>()
  #faults: DevFault[] = []

  constructor(db: Queryable, definitions: Definition[]) {
    this.#db = db
    this.#steps = new Map(
      definitions.map(({ kind, steps }) => [kind, steps.filter(({ call }) => call).map(({ name }) => name)]),
    )
  }

  get items(): DevFault[] {
    return this.#faults
  }

  async load(): Promise<void> {
    this.#faults = await listFaults(this.#db)
  }

  async add(given: DevFaultCreate): Promise<DevFault> {
    this.#check(given)
    const fault = { ...given, id: uuid(), matched: 0, applied: 0 }
    await insertFault(this.#db, fault)
    this.#faults.push(fault)
    return fault
  }

  async remove(id?: string): Promise<void> {
    if (id !== undefined && !this.#faults.some((fault) => fault.id === id))
      throw new Failure('not_found', 'No such fault.')
    await deleteFaults(this.#db, id ?? null)
    this.#faults = id === undefined ? [] : this.#faults.filter((fault) => fault.id !== id)
    if (id === undefined) this.#decisions.clear()
  }

  /** Delays, rejects or hangs a request that matches a fault. */
  async interceptRequest(request: FastifyRequest): Promise<void> {
    const { routeId, body } = request
    if (routeId === null || !this.#hasFaultOn(routeId)) return
    const fault = this.#chooseFault(routeId, '', String((body as { name?: unknown } | null)?.name ?? ''))
    if (!fault) return
    await delay(fault.delay_ms ?? 0)
    if (fault.effect === 'hang') await waitForDisconnect(request)
    if (fault.effect === 'fail') throw new Failure((fault.code as never) ?? 'unavailable', message)
    if (fault.effect === 'reject') throw new Failure((fault.code as never) ?? 'conflict', message)
  }

  /** Wraps the steps, so that active faults apply to them. Only steps with engine work can fail. */
  wrapSteps(definitions: Definition[]): Definition[] {
    return definitions.map((definition) => ({
      ...definition,
      steps: definition.steps.map((step) =>
        step.call ? { ...step, call: (work) => this.#call(definition, step, step.call!, work) } : step,
      ),
    }))
  }

  async #call(
    { kind, isRetriedNotUndone }: Definition,
    { name: step }: Step,
    call: (work: Work) => Promise<Outcome>,
    work: Work,
  ): Promise<Outcome> {
    const key = `${work.operation.id} ${step}`
    const isFirst = !this.#decisions.has(key)
    if (isFirst) this.#decide(key, await this.#chooseForStep(kind, step, work))
    const fault = this.#decisions.get(key)
    if (!fault) return call(work)
    if (isFirst) await delay(fault.delay_ms ?? 0, undefined, { signal: work.signal })
    switch (fault.effect) {
      case 'delay':
        return call(work)
      case 'hang':
        return new Promise((_, reject) =>
          work.signal.addEventListener('abort', () => reject(new EngineError('unavailable', message))),
        )
      case 'lie':
      case 'forget':
        return engineFault.run(fault.effect, () => call(work))
      case 'reject':
        this.#decisions.delete(key)
        throw new EngineError('rejected', message)
      case 'fail':
        this.#decisions.delete(key)
        // The runner retries the step after any error, so the fault must not fail the operation.
        if (isRetriedNotUndone) throw new EngineError('unavailable', message)
        return fail(
          (fault.code ?? (step === 'boot' ? 'boot_failed' : 'engine_error')) as FailureCode,
          message,
        )
    }
  }

  async #chooseForStep(kind: string, step: string, { operation, services }: Work): Promise<DevFault | null> {
    if (!this.#hasFaultOn(kind)) return null
    const [named] = await withResourceNames(services.database, [{ resource_id: operation.resource_id }])
    return this.#chooseFault(kind, step, named!.resource_name)
  }

  #decide(key: string, fault: DevFault | null): void {
    if (this.#decisions.size >= maxDecisions) this.#decisions.clear()
    this.#decisions.set(key, fault)
  }

  #hasFaultOn(on: string): boolean {
    return this.#faults.some((fault) => fault.on === on)
  }

  /** Counts a call against every fault that matches it, and returns the first one that takes effect. */
  #chooseFault(on: string, step: string, name: string): DevFault | null {
    let chosen: DevFault | null = null
    for (const fault of this.#faults) {
      const isMatch =
        fault.on === on &&
        (fault.step === undefined || fault.step === step) &&
        (fault.name_pattern === undefined || globOf(fault.name_pattern).test(name))
      if (!isMatch) continue
      const isDue =
        fault.matched >= (fault.after ?? 0) && fault.applied < (fault.times ?? Number.POSITIVE_INFINITY)
      fault.matched++
      if (!chosen && isDue && isSelected(fault, name)) {
        fault.applied++
        chosen = fault
      }
      void updateFault(this.#db, fault).catch(() => {})
    }
    return chosen
  }

  #check({ on, step, effect, code }: DevFaultCreate): void {
    if (this.#faults.length >= maxFaults)
      throw new Failure('conflict', `There are already ${maxFaults} faults. Delete some first.`)
    const kinds = [...this.#steps.keys()]
    const isRoute = (routeIds as string[]).includes(on)
    const steps = this.#steps.get(on)
    if (!isRoute && !steps) {
      const hint = didYouMean(nearest(on, [...kinds, ...routeIds]))
      refuse(
        `on: unknown route or operation ${on}${hint}. Operations: ${kinds.join(', ')}. Routes: the operationIds of openapi.json.`,
      )
    }
    if (steps && step !== undefined && !steps.includes(step))
      refuse(`step: ${on} has no step ${step} with engine work. Supported: ${steps.join(', ')}.`)
    if (isRoute && step !== undefined) refuse('step: a route has no steps.')
    if (isRoute && (effect === 'lie' || effect === 'forget'))
      refuse(`effect: ${effect} applies only to operations. Supported for routes: fail, reject, delay, hang.`)
    if (isRoute && ['boot_failed', 'engine_error', 'cancelled'].includes(code ?? ''))
      refuse(`code: ${code} applies only to operations.`)
  }
}

function refuse(problem: string): never {
  throw new Failure('invalid_argument', problem)
}

/**
 * If a fault has a probability, its seed and the resource's name decide whether it applies. For requests
 * without a name, the number of the match is used. The same seed therefore gives the same failures,
 * regardless of the order in which requests and steps arrive.
 */
function isSelected({ probability = 1, seed = 0, matched }: DevFault, name: string): boolean {
  const digest = createHash('sha256')
    .update(`${seed} ${name || matched}`)
    .digest()
  return digest.readUInt32BE() / 2 ** 32 < probability
}

function globOf(pattern: string): RegExp {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*/g, '.*')
    .replace(/\?/g, '.')
  return new RegExp(`^${source}$`)
}

const waitForDisconnect = ({ raw }: FastifyRequest) =>
  new Promise<never>((_, reject) =>
    raw.socket.once('close', () => reject(new Failure('unavailable', message))),
  )
