import type { RouteId } from '@slipway/contract'
import { isApiError } from '@slipway/sdk'
import { isSame } from '../values/codec.ts'
import { type Attribute, isKnown, isValues, unknown, type Value, type Values } from '../values/types.ts'
import { ProblemError } from './diagnostics.ts'
import { hasOperation, type Resource } from './resource.ts'
import type { Private } from './row.ts'
import { projectOf, type Session } from './session.ts'

/** Returns the path parameters of a resource. */
export function paramsOf(session: Session, resource: Resource, state: Values): Record<string, string> {
  const id = String(state.id ?? '')
  if (!resource.isInProject || resource.idParam === 'project_id') return { [resource.idParam]: id }
  return { project_id: projectOf(session, state.project_id), [resource.idParam]: id }
}

/** Reads a resource. Returns null only if it does not exist, and throws on every other problem. */
export async function readRecord(
  session: Session,
  resource: Resource,
  state: Values,
): Promise<Values | null> {
  const params = paramsOf(session, resource, state)
  try {
    if (resource.routes.get) {
      const record = (await session.call(resource.routes.get, { params })) as Values
      return { ...record, ...(await resource.row.extend?.(session, params.project_id!, record)) }
    }
  } catch (error) {
    if (!isApiError(error) || error.code !== 'not_found') throw error
    if (resource.isInProject) await requireProject(session, params.project_id!)
    return null
  }
  const items = await listRecords(session, resource.routes.list!, { project_id: params.project_id! })
  return items.find(({ id }) => id === state.id) ?? null
}

export async function listRecords(
  session: Session,
  route: RouteId,
  target: Record<string, unknown>,
): Promise<Values[]> {
  return (await session.client.collect(route as never, target as never)) as Values[]
}

/**
 * The service also returns 404 if the credential cannot see the project. Without this check, a wrong access
 * key would remove every resource from the state.
 */
async function requireProject(session: Session, projectId: string): Promise<void> {
  try {
    await session.call('projectGet', { params: { project_id: projectId } })
  } catch (error) {
    if (!isApiError(error) || error.code !== 'not_found') throw error
    throw new ProblemError({
      summary: 'The project cannot be read',
      detail: `The access key has no access to the project ${projectId}, or the project was deleted. Nothing was removed from the state. Check access_key and project_id; if the project was deleted, remove its resources with terraform state rm.`,
    })
  }
}

/**
 * Returns the request that created a resource; null if the service no longer has that request. It contains
 * fields that the record does not, such as a startup script.
 */
export async function readCreation(
  session: Session,
  resource: Resource,
  state: Values,
): Promise<Values | null> {
  if (!hasOperation(resource.routes.create!)) return null
  const project_id = projectOf(session, state.project_id)
  const target = { project_id, resource_id: state.id }
  const operations = await listRecords(session, 'operationList', target)
  const creation = operations.find(({ metadata }) => (metadata as Values).operation_name === 'CREATE')
  if (!creation) return null
  // Lists contain only the digest of a script.
  const params = { project_id, operation_id: String(creation.operation_id) }
  const operation = (await session.call('operationGet', { params })) as { metadata: { request: Values } }
  return operation.metadata.request
}

/**
 * Returns the state of a resource from its record. `prior` is the earlier state or the plan. It provides the
 * values that the record does not contain, and its spelling is kept where two spellings mean the same thing.
 */
export function stateOf(
  session: Session,
  resource: Resource,
  record: Values,
  prior: Values,
  store: Private,
): Values {
  const derived = resource.row.derive?.(record, prior, store) ?? {}
  const project = resource.isInProject ? { project_id: projectOf(session, prior.project_id) } : {}
  const shown: Values = { id: prior.id ?? null, ...project, ...record, ...derived }
  const entries = resource.attributes.map((attribute) => {
    const { name } = attribute
    const before = prior[name] ?? null
    const now = name in shown ? withoutEmpty(shown[name]!, attribute) : before
    const value = now === unknown ? null : now
    const isUnchanged = before !== null && before !== unknown && isEquivalent(resource, name, before, value)
    return [name, isUnchanged ? before : value]
  })
  return Object.fromEntries(entries)
}

/** Returns whether a configured or earlier value means the same as an actual one. */
export function isEquivalent(resource: Resource, name: string, wanted: Value, actual: Value): boolean {
  if (isSame(wanted, actual)) return true
  if (wanted === null || actual === null || !isKnown(wanted) || !isKnown(actual)) return false
  return resource.row.equivalent?.[name]?.(wanted, actual) ?? false
}

/** In nested objects, an unset field is null in a configuration, but an empty string in a response. */
function withoutEmpty(value: Value, { use, type }: Attribute): Value {
  if (use === 'output' || typeof type === 'string' || !('nesting' in type)) return value
  const clean = (object: Value): Value =>
    isValues(object)
      ? Object.fromEntries(
          Object.entries(object).map(([name, member]) => [name, member === '' ? null : member]),
        )
      : object
  return Array.isArray(value) ? value.map(clean) : clean(value)
}
