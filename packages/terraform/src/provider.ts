import { applyChange } from './engine/apply.ts'
import type { DataSource } from './engine/data-source.ts'
import {
  attributePath,
  type Problem,
  ProblemError,
  problemsOf,
  wireDiagnostics,
} from './engine/diagnostics.ts'
import { checkConfig, planChange } from './engine/plan.ts'
import { readCreation, readRecord, stateOf } from './engine/records.ts'
import type { Resource } from './engine/resource.ts'
import type { Private } from './engine/row.ts'
import { openSession, projectOf, type Session } from './engine/session.ts'
import { providerAttributes, settingsFrom } from './engine/settings.ts'
import { dataSources, resources } from './resources/index.ts'
import { wireSchema } from './schema/wire.ts'
import { type DynamicValue, decodeJsonState, decodeState, encodeState } from './values/codec.ts'
import { isKnown, type Value, type Values } from './values/types.ts'
import type { Handlers } from './wire/plugin.ts'

interface PlanRequest {
  type_name: string
  prior_state: DynamicValue
  config: DynamicValue
  proposed_new_state: DynamicValue
  prior_private: Uint8Array
}

interface TypedRequest {
  type_name: string
  config: DynamicValue
}

/**
 * Handles Terraform's calls: decodes the request, calls the functions in `engine/`, and encodes the result or
 * the diagnostics.
 */
export class Provider implements Handlers {
  readonly #env: NodeJS.ProcessEnv
  readonly #stop = new AbortController()
  #session: Session | Problem[] = [
    { summary: 'The provider is not configured', detail: 'Terraform sent no configuration.' },
  ]

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env
  }

  #requireSession(): Session {
    if (Array.isArray(this.#session)) throw new ProblemError(...this.#session)
    return this.#session
  }

  /** The default project of new resources; null while the provider's configuration is unknown. */
  #defaultProject(): string | null {
    return Array.isArray(this.#session) ? null : projectOf(this.#session, null)
  }

  GetProviderSchema = async () => ({
    provider: wireSchema(providerAttributes, 'Manages resources of a Slipway service.'),
    resource_schemas: Object.fromEntries(
      resources.map(({ row, attributes }) => [
        `slipway_${row.name}`,
        wireSchema(attributes, row.description),
      ]),
    ),
    data_source_schemas: Object.fromEntries(
      dataSources.map(({ name, attributes, description }) => [
        `slipway_${name}`,
        wireSchema(attributes, description),
      ]),
    ),
    server_capabilities: { plan_destroy: true },
  })

  ValidateProviderConfig = async () => ({ diagnostics: [] })

  ConfigureProvider = async ({ config }: TypedRequest) => {
    const given = decodeState(config, providerAttributes) ?? {}
    const settings = settingsFrom(given, this.#env)
    this.#session = Array.isArray(settings) ? settings : openSession(settings, this.#stop.signal)
    // Some values may be known only after another resource is applied. Errors are then reported at the first
    // use.
    const isComplete = Object.values(given).every(isKnown)
    return { diagnostics: wireDiagnostics(Array.isArray(settings) && isComplete ? settings : []) }
  }

  ValidateResourceConfig = async ({ type_name, config }: TypedRequest) => {
    const resource = resourceOf(type_name)
    const problems = checkConfig(resource, decodeState(config, resource.attributes) ?? {})
    return { diagnostics: wireDiagnostics(problems) }
  }

  ValidateDataResourceConfig = async () => ({ diagnostics: [] })

  UpgradeResourceState = async (request: { type_name: string; raw_state: { json: Uint8Array } }) => {
    const { attributes } = resourceOf(request.type_name)
    return { upgraded_state: encodeState(decodeJsonState(request.raw_state.json, attributes), attributes) }
  }

  ReadResource = (request: { type_name: string; current_state: DynamicValue; private: Uint8Array }) => {
    const resource = resourceOf(request.type_name)
    const prior = decodeState(request.current_state, resource.attributes)!
    return respond(
      async () => {
        const { state, store } = await refresh(
          this.#requireSession(),
          resource,
          prior,
          readPrivate(request.private),
        )
        return { new_state: encodeState(state, resource.attributes), private: writePrivate(store) }
      },
      // After an error, the state stays unchanged, so that no resource is removed from it.
      { new_state: request.current_state, private: request.private },
      `read the ${resource.row.noun} ${String(prior.name ?? prior.id)}`,
    )
  }

  PlanResourceChange = (request: PlanRequest) =>
    respond(async () => this.#plan(request), { planned_state: request.prior_state }, 'plan the change')

  #plan(request: PlanRequest): object {
    const resource = resourceOf(request.type_name)
    const { attributes } = resource
    const isDeletion = decodeState(request.proposed_new_state, attributes) === null
    const prior = decodeState(request.prior_state, attributes)
    const config = isDeletion ? null : decodeState(request.config, attributes)
    if (config && !prior && resource.isInProject) config.project_id ??= this.#defaultProject()
    const plan = planChange(resource, prior, config, readPrivate(request.prior_private))
    return {
      planned_state: encodeState(plan.planned, attributes),
      requires_replace: plan.replace.map(attributePath),
      planned_private: writePrivate(plan.store),
      diagnostics: wireDiagnostics(plan.problems),
    }
  }

  ApplyResourceChange = (request: {
    type_name: string
    prior_state: DynamicValue
    planned_state: DynamicValue
    planned_private: Uint8Array
  }) => {
    const resource = resourceOf(request.type_name)
    const { attributes } = resource
    const prior = decodeState(request.prior_state, attributes)
    const planned = decodeState(request.planned_state, attributes)
    const store = readPrivate(request.planned_private)
    const { name = null } = planned ?? prior!
    return respond(
      async () => {
        const done = await applyChange(this.#requireSession(), resource, prior, planned, store)
        return {
          new_state: encodeState(done.state, attributes),
          private: writePrivate(done.store),
          diagnostics: wireDiagnostics(done.problems),
        }
      },
      { new_state: request.prior_state },
      `apply the change to the ${resource.row.noun}${typeof name === 'string' ? ` ${name}` : ''}`,
    )
  }

  ImportResourceState = async ({ type_name, id }: { type_name: string; id: string }) => {
    const resource = resourceOf(type_name)
    const [ownId = '', projectId] = id.split('/').toReversed()
    // A budget has no id of its own; it uses the id of its project.
    const project = resource.idParam === 'project_id' ? ownId : (projectId ?? null)
    const state: Values = { id: ownId, ...(resource.isInProject && { project_id: project }) }
    const imported = {
      type_name,
      state: encodeState(state, resource.attributes),
      private: writePrivate({ isImported: true }),
    }
    return { imported_resources: [imported] }
  }

  ReadDataSource = ({ type_name, config }: TypedRequest) => {
    const { attributes, read, name } = dataSourceOf(type_name)
    return respond(
      async () => {
        const given = decodeState(config, attributes) ?? {}
        return { state: encodeState(await read(this.#requireSession(), given), attributes) }
      },
      {},
      `read the data source slipway_${name}`,
    )
  }

  StopProvider = async () => {
    this.#stop.abort()
    return {}
  }
}

/** Runs the work of a call. On an error, returns the unchanged state with diagnostics. */
async function respond(run: () => Promise<object>, unchanged: object, doing: string): Promise<object> {
  try {
    return await run()
  } catch (error) {
    return { ...unchanged, diagnostics: wireDiagnostics(problemsOf(error, doing)) }
  }
}

/** Reads the current state. After an import, fields that the record lacks come from the creation request. */
async function refresh(session: Session, resource: Resource, prior: Values, given: Private) {
  const record = await readRecord(session, resource, prior)
  if (!record) return { state: null, store: given }
  const isJustImported = given.isImported && prior[resource.attributes[0]!.name] === null
  const creation = isJustImported ? await readCreation(session, resource, prior) : null
  const store = creation ? (resource.row.remember?.(record, creation) ?? {}) : given
  const refreshed = Object.fromEntries(
    (resource.row.refreshed ?? []).map((name): [string, Value] => [name, null]),
  )
  const known = { ...prior, ...creation, ...refreshed }
  return { state: stateOf(session, resource, record, known, store), store }
}

const resourcesByName = new Map(resources.map((resource) => [`slipway_${resource.row.name}`, resource]))
const dataSourcesByName = new Map(dataSources.map((source) => [`slipway_${source.name}`, source]))

const resourceOf = (name: string): Resource => requireKnown(resourcesByName.get(name), name)
const dataSourceOf = (name: string): DataSource => requireKnown(dataSourcesByName.get(name), name)

function requireKnown<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`Unknown resource or data source ${name}.`)
  return value
}

const readPrivate = (bytes: Uint8Array): Private =>
  bytes?.length ? JSON.parse(Buffer.from(bytes).toString('utf8')) : {}
const writePrivate = (store: Private) => Buffer.from(JSON.stringify(store))
