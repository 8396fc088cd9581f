import type { ErrorObject } from 'ajv'
import type { FieldProblem } from '../domain/failure.ts'
import { formats } from '../domain/formats.ts'
import { didYouMean, nearest, oneOf } from '../domain/nearest.ts'

export type Part = 'query' | 'body'

interface Keywords {
  format?: string
  examples?: unknown[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  properties?: Record<string, unknown>
}

const kinds: Record<string, string> = {
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

/** What a schema found wrong, in words: what is wanted instead, and the nearest value that would do. */
export function describe(error: ErrorObject, part: Part): FieldProblem {
  const at = part === 'query' ? error.instancePath.slice(1) : error.instancePath
  const inside = (name: string) => (part === 'query' ? name : `${at}/${pointerPart(name)}`)
  if (error.keyword === 'required')
    return { field: inside(error.params.missingProperty), message: 'is required' }
  if (error.keyword === 'additionalProperties') {
    const name: string = error.params.additionalProperty
    const known = Object.keys((error.parentSchema as Keywords).properties ?? {})
    return { field: inside(name), message: unknownMember(name, known) }
  }
  // A name of a member that may not be one.
  if (error.propertyName !== undefined)
    return { field: inside(error.propertyName), message: problemOf(error) }
  return { field: at, message: problemOf(error) }
}

export function unknownMember(name: string, known: string[]): string {
  if (known.length === 0) return 'is not known here'
  const likely = nearest(name, known)
  return likely
    ? `is not known here${didYouMean(likely)}`
    : `is not known here; known are ${known.join(', ')}`
}

function problemOf({ keyword, params, data, message, parentSchema }: ErrorObject): string {
  const schema = (parentSchema ?? {}) as Keywords
  switch (keyword) {
    case 'enum':
      return oneOf(data, (params.allowedValues as unknown[]).map(String))
    case 'const':
      return `must be ${JSON.stringify(params.allowedValue)}`
    case 'type':
      return `must be ${[params.type]
        .flat()
        .map((type: string) => kinds[type] ?? type)
        .join(' or ')}`
    case 'pattern':
    case 'format':
      return formProblem(schema, String(data))
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return range(schema)
    case 'minLength':
      return schema.minLength === 1
        ? 'must not be empty'
        : `must have at least ${schema.minLength} characters`
    case 'maxLength':
      return `must have at most ${schema.maxLength} characters`
    case 'minItems':
      return params.limit === 1 ? 'must name at least one' : `must name at least ${params.limit}`
    case 'maxItems':
      return `must name at most ${params.limit}`
    case 'minProperties':
      return 'must name at least one member'
    case 'maxProperties':
      return `must have at most ${params.limit} members`
    case 'uniqueItems':
      return 'must not name anything twice'
    default:
      return message ?? 'is not acceptable'
  }
}

const standardForms: Record<string, string> = {
  date: 'must be a date, such as 2026-11-14',
  'date-time': 'must be a time with its zone, such as 2026-12-31T00:00:00Z',
}

/** Never the pattern itself: few people read them. */
function formProblem({ format = '', examples }: Keywords, text: string): string {
  const known = formats[format]?.(text) ?? standardForms[format]
  if (known) return known
  return examples?.length ? `must have another form, such as ${examples[0]}` : 'must have another form'
}

function range({ minimum, maximum }: Keywords): string {
  if (minimum === undefined) return `must be at most ${maximum}`
  return maximum === undefined ? `must be at least ${minimum}` : `must be from ${minimum} to ${maximum}`
}

const pointerPart = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1')
