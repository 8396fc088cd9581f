import type { RouteId } from '@slipway/contract'
import { isApiError, type Operation } from '@slipway/sdk'
import { isValues, unknown, type Value, type Values } from '../values/types.ts'
import { type Problem, ProblemError, problemsOf } from './diagnostics.ts'
import { isEquivalent, paramsOf, readRecord, stateOf } from './records.ts'
import { hasOperation, type Resource } from './resource.ts'
import type { Private } from './row.ts'
import { type CallParts, projectOf, type Session } from './session.ts'
import { outOfStockProblem } from './stock.ts'
import { Waiter } from './waiting.ts'

export interface ApplyResult {
  state: Values | null
  store: Private
  problems: Problem[]
}

/** Makes a planned change. Returns the current state, even after an error. */
export async function applyChange(
  session: Session,
  resource: Resource,
  prior: Values | null,
  planned: Values | null,
  store: Private,
): Promise<ApplyResult> {
  const waiter = new Waiter(session, planned ?? prior!, !planned ? 'delete' : prior ? 'update' : 'create')
  const run = new Run(session, resource, waiter, store)
  if (!planned) return run.delete(prior!)
  return prior ? run.update(prior, planned) : run.create(planned)
}

/** One apply. The client sends each write with an Idempotency-Key, so a retry does not repeat the change. */
class Run {
  readonly #session: Session
  readonly #resource: Resource
  readonly #waiter: Waiter
  #store: Private

  constructor(session: Session, resource: Resource, waiter: Waiter, store: Private) {
    this.#session = session
    this.#resource = resource
    this.#waiter = waiter
    this.#store = { ...store }
  }

  async create(planned: Values): Promise<ApplyResult> {
    const { routes, isInProject, row } = this.#resource
    const session = this.#session
    const project: Record<string, string> = isInProject
      ? { project_id: projectOf(session, planned.project_id) }
      : {}
    let known: Values = { ...planned, ...project }
    try {
      const body = bodyOf(planned, this.#resource.bodyMembers)
      const response = await this.#waiter.send(routes.create!, { params: project, body })
      const started = hasOperation(routes.create!) ? (response.operation as unknown as Operation) : undefined
      // Only this response contains a secret; later reads do not.
      const shownOnce = Object.entries(started ? {} : response).filter(([name]) => known[name] === unknown)
      const id = started?.metadata.id ?? response.id ?? project.project_id!
      known = { ...known, ...Object.fromEntries(shownOnce), id }
      const notes = started ? await this.#waiter.end(started) : []
      const record = await this.#read(known)
      Object.assign(this.#store, row.remember?.(record, planned))
      const rest = { ...known, ...stateOf(session, this.#resource, record, known, this.#store) }
      await this.#sendUpdates(rest, planned, (name) => !this.#resource.bodyMembers.includes(name))
      return this.#done(stateOf(session, this.#resource, await this.#read(known), known, this.#store), notes)
    } catch (error) {
      const problems = await this.#explain(error, 'create', planned)
      return this.#done(await this.#stateAfterFailure(known), problems)
    }
  }

  async update(prior: Values, planned: Values): Promise<ApplyResult> {
    const { row } = this.#resource
    const known: Values = { ...planned, id: prior.id ?? null }
    const changed = new Set(this.#changedInputs(prior, planned))
    try {
      await row.change?.({
        ...{ session: this.#session, prior, planned, changed, private: this.#store },
        call: (route, parts) => this.#callAndWait(route, prior, parts),
      })
      await this.#sendUpdates(prior, planned, (name) => changed.has(name))
      const record = await this.#read(known)
      return this.#done(stateOf(this.#session, this.#resource, record, known, this.#store), [])
    } catch (error) {
      const problems = await this.#explain(error, 'change', prior)
      return this.#done((await this.#stateAfterFailure(prior)) ?? prior, problems)
    }
  }

  async delete(prior: Values): Promise<ApplyResult> {
    const { routes, row } = this.#resource
    const params = paramsOf(this.#session, this.#resource, prior)
    try {
      if (!routes.delete) {
        await this.#waiter.send(routes.update!, { params, body: row.resetBody })
        return this.#done(null, [])
      }
      await row.beforeDelete?.({
        ...{ session: this.#session, prior },
        call: (route, parts) => this.#callAndWait(route, prior, parts),
      })
      const query = row.deleteQuery?.(prior)
      const response = await this.#waiter.send(routes.delete, { params, ...(query && { query }) })
      const isLong = hasOperation(routes.delete)
      const notes = isLong ? await this.#waiter.end(response.operation as unknown as Operation) : []
      if (notes.length === 0) return this.#done(null, [])
      // If a resource still exists after its deletion, Terraform requires an error.
      return this.#done(await this.#stateAfterFailure(prior), notes.map(asError))
    } catch (error) {
      if (isApiError(error) && error.code === 'not_found') return this.#done(null, [])
      return this.#done(prior, await this.#explain(error, 'delete', prior))
    }
  }

  #done(state: Values | null, problems: Problem[]): ApplyResult {
    return { state, store: this.#store, problems }
  }

  /** Calls a route with the parameters of this resource, and waits for its operation. */
  async #callAndWait(route: RouteId, state: Values, parts: CallParts): Promise<void> {
    const params = { ...paramsOf(this.#session, this.#resource, state), ...parts.params }
    const response = await this.#waiter.send(route, { ...parts, params })
    if (!hasOperation(route)) return
    const notes = await this.#waiter.end(response.operation as unknown as Operation)
    if (notes.length > 0) throw new ProblemError(...notes.map(asError))
  }

  /**
   * Sends the changed fields in as few requests as the update route allows. A PUT request contains all fields,
   * because it replaces the whole record.
   */
  async #sendUpdates(prior: Values, planned: Values, isWanted: (name: string) => boolean): Promise<void> {
    const { routes, updateForms, row } = this.#resource
    const isPut = routes.update === routes.create
    for (const { members, required } of updateForms) {
      const changed = members.filter(
        (name) =>
          isWanted(name) &&
          !row.inPlace?.includes(name) &&
          isSet(planned[name]) &&
          !isEquivalent(this.#resource, name, planned[name]!, prior[name] ?? null),
      )
      if (changed.length === 0) continue
      const names = members.filter((name) => isPut || changed.includes(name) || required.includes(name))
      await this.#callAndWait(routes.update!, prior, { body: bodyOf(planned, names) })
    }
  }

  #changedInputs(prior: Values, planned: Values): string[] {
    return Object.keys(this.#resource.inputs).filter(
      (name) => !isEquivalent(this.#resource, name, planned[name] ?? null, prior[name] ?? null),
    )
  }

  async #read(state: Values): Promise<Values> {
    const record = await readRecord(this.#session, this.#resource, state)
    if (record) return record
    const { noun } = this.#resource.row
    throw new ProblemError({
      summary: `The ${noun} no longer exists`,
      detail: `The ${noun} ${String(state.id)} was deleted during the apply. The next plan will create it again.`,
    })
  }

  /** Returns the resource as the service shows it, or null if it does not exist. */
  async #stateAfterFailure(known: Values): Promise<Values | null> {
    if (typeof known.id !== 'string') return null
    try {
      const record = await readRecord(this.#session, this.#resource, known)
      return record && stateOf(this.#session, this.#resource, record, known, this.#store)
    } catch {
      // The resource cannot be read now. Known values stay in the state, so that Terraform does not lose it.
      return Object.fromEntries(
        Object.entries(known).map(([name, value]) => [name, value === unknown ? null : value]),
      )
    }
  }

  async #explain(error: unknown, verb: string, state: Values): Promise<Problem[]> {
    const { row, attributes } = this.#resource
    const doing = `${verb} the ${row.noun} ${String(state.name ?? state.id ?? '')}`.trim()
    if (isApiError(error) && error.code === 'out_of_stock')
      return [await outOfStockProblem(this.#session, error, doing, state)]
    const problems = problemsOf(
      error,
      doing,
      attributes.map(({ name }) => name),
    )
    if (!isApiError(error) || error.code !== 'already_exists' || verb !== 'create') return problems
    const hint = ` To manage the existing ${row.noun} with Terraform, import it: terraform import slipway_${row.name}.<name> <id>.`
    return problems.map((problem) => ({ ...problem, detail: problem.detail + hint }))
  }
}

const asError = (problem: Problem): Problem => ({ ...problem, isWarning: false })

const isSet = (value: Value | undefined) => value !== null && value !== undefined && value !== unknown

/** Returns a request body. Fields that are not set are omitted, at every depth. */
function bodyOf(values: Values, members: string[]): Values {
  return Object.fromEntries(
    members.filter((name) => isSet(values[name])).map((name) => [name, withoutNulls(values[name]!)]),
  )
}

function withoutNulls(value: Value): Value {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isValues(value)) return value
  const entries = Object.entries(value).filter(([, member]) => isSet(member))
  return Object.fromEntries(entries.map(([name, member]) => [name, withoutNulls(member)]))
}
