import { problemOf } from '../schema/check.ts'
import { type Attribute, isValues, unknown, type Value, type Values } from '../values/types.ts'
import type { Problem } from './diagnostics.ts'
import { isDuration } from './duration.ts'
import { isEquivalent } from './records.ts'
import type { Resource } from './resource.ts'
import type { Private } from './row.ts'

export interface Plan {
  planned: Values | null
  /** The attributes whose change requires that the resource is deleted and created again. */
  replace: string[]
  problems: Problem[]
  store: Private
}

/** Finds mistakes in a configuration. Values may be unknown. */
export function checkConfig(resource: Resource, config: Values): Problem[] {
  const summary = `Invalid ${resource.row.noun}`
  const schemaProblems = Object.entries(resource.inputs).flatMap(([attribute, schema]) => {
    const detail = problemOf(config[attribute] ?? null, schema)
    return detail ? [{ summary, detail, attribute }] : []
  })
  return [
    ...schemaProblems,
    ...timeoutProblems(config.timeouts ?? null),
    ...(resource.row.checkConfig?.(config) ?? []),
  ]
}

function timeoutProblems(timeouts: Value): Problem[] {
  const given = isValues(timeouts) ? Object.values(timeouts) : []
  const wrong = given.find((value) => typeof value === 'string' && !isDuration(value))
  if (wrong === undefined) return []
  const detail = `${JSON.stringify(wrong)} is not a duration. Expected hours, minutes and seconds, for example 1h30m or 90s.`
  return [{ summary: 'Invalid timeout', detail, attribute: 'timeouts' }]
}

/** Compares the configuration with the state, and returns what an apply would do. */
export function planChange(
  resource: Resource,
  prior: Values | null,
  config: Values | null,
  store: Private,
): Plan {
  if (!config) return { planned: null, replace: [], problems: protectionProblems(resource, prior!), store }
  const defaults = defaultsFor(resource, config)
  const planned: Values = {}
  for (const attribute of resource.attributes)
    planned[attribute.name] = plannedValue(resource, attribute, prior, config, defaults)
  if (!prior) return { planned, replace: [], problems: [], store }

  const changed = changedNames(resource, prior, planned)
  const checked = changed.length > 0 ? resource.row.checkChange?.(prior, planned, config) : undefined
  const replace = [
    ...changed.filter((name) => needsReplacement(resource, name, prior, store)),
    ...(checked?.replace ?? []),
  ]
  if (changed.length > 0 || store.needsStart) markOutputsUnknown(resource, planned, changed, store)
  for (const name of changed.flatMap((cause) => resource.row.affected?.[cause] ?? []))
    if ((config[name] ?? null) === null) planned[name] = unknown
  const problems = replace.length > 0 ? protectionProblems(resource, prior) : (checked?.problems ?? [])
  return { planned, replace, problems, store }
}

function plannedValue(
  resource: Resource,
  { name, use, isComputed }: Attribute,
  prior: Values | null,
  config: Values,
  defaults: Values,
): Value {
  const configured = use === 'output' ? null : (config[name] ?? null)
  const before = prior?.[name] ?? null
  const wanted = configured ?? defaults[name] ?? null
  if (wanted !== null)
    return before !== null && isEquivalent(resource, name, wanted, before) ? before : wanted
  if (!isComputed) return null
  return prior || resource.row.kept?.includes(name) ? before : unknown
}

/**
 * Returns the service's defaults for fields that are not set. If the configuration has a template, there are
 * none, because the template determines these fields.
 */
function defaultsFor({ row }: Resource, config: Values): Values {
  if (row.defaultsUnless && (config[row.defaultsUnless] ?? null) !== null) return {}
  return row.defaults ?? {}
}

const changedNames = (resource: Resource, prior: Values, planned: Values): string[] =>
  resource.attributes
    .filter(
      ({ name, use }) =>
        use !== 'output' && !isEquivalent(resource, name, planned[name]!, prior[name] ?? null),
    )
    .map(({ name }) => name)

export function needsReplacement(resource: Resource, name: string, prior: Values, store: Private): boolean {
  const { row, updateForms } = resource
  if (name === 'timeouts' || row.local?.[name] || row.inPlace?.includes(name)) return false
  if (updateForms.some(({ members }) => members.includes(name))) return false
  // The service does not return this field. After an import, the configured value is accepted without comparison.
  const isHidden = !resource.recordMembers.includes(name) && (prior[name] ?? null) === null
  return !(store.isImported && isHidden)
}

/** A change of these attributes affects no other value, except the time of the last change. */
const annotations = ['name', 'labels', 'description', 'deletion_protection', 'timeouts']

/** Marks outputs that the change can affect as unknown; the plan then shows "known after apply". */
function markOutputsUnknown(
  { row, attributes }: Resource,
  planned: Values,
  changed: string[],
  { needsStart }: Private,
): void {
  const fixed = ['id', 'created_at', 'project_id', ...(row.fixed ?? [])]
  const isAnnotation = !needsStart && changed.every((name) => annotations.includes(name) || row.local?.[name])
  for (const { name, use } of attributes) {
    const mayChange = isAnnotation
      ? name === 'updated_at' || row.related?.includes(name)
      : !fixed.includes(name)
    if (use === 'output' && mayChange) planned[name] = unknown
  }
}

function protectionProblems({ row }: Resource, prior: Values): Problem[] {
  if (prior.deletion_protection !== true) return []
  return [
    {
      summary: `The ${row.noun} ${String(prior.name)} is protected`,
      detail: `This plan would delete the ${row.noun}, and its deletion protection is on. Set deletion_protection = false and apply that change first.`,
      attribute: 'deletion_protection',
    },
  ]
}
