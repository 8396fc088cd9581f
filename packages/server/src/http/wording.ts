import type { ErrorObject } from 'ajv'
import type { FieldProblem } from '../domain/failure.ts'
import { formats } from '../domain/formats.ts'
import { nearest, oneOf } from '../domain/nearest.ts'

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
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

/** A problem with a field. Its message continues a sentence that begins with the field. */
export interface Problem extends FieldProblem {
  /** The whole sentence, if it does not begin with the field. */
  sentence?: string
}

/** Says what a schema expects instead of the rejected value, with the nearest accepted value if there is one. */
export function describe(error: ErrorObject, part: Part): Problem {
  const at = part === 'query' ? error.instancePath.slice(1) : error.instancePath
  const inside = (name: string) => (part === 'query' ? name : `${at}/${pointerPart(name)}`)
  if (error.keyword === 'required')
    return { field: inside(error.params.missingProperty), message: 'is required' }
  if (error.keyword === 'additionalProperties') {
    const name: string = error.params.additionalProperty
    return unknownName(inside(name), name, Object.keys((error.parentSchema as Keywords).properties ?? {}))
  }
  const field = error.propertyName === undefined ? at : inside(error.propertyName)
  return { field, message: problemOf(error) }
}

/** A query parameter, or a field of the body, that the endpoint does not have. */
export function unknownName(field: string, name: string, supported: string[]): Problem {
  const kind = field.startsWith('/') ? 'field' : 'parameter'
  const likely = nearest(name, supported)
  const hint = likely
    ? `did you mean ${likely}?`
    : `supported: ${supported.length > 0 ? supported.join(', ') : 'none'}`
  const sentence = `Unknown ${kind} ${field.replace(/^\//, '')}. ${hint[0]!.toUpperCase()}${hint.slice(1)}`
  return { field, message: `is unknown; ${hint}`, sentence }
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
      return formatProblem(schema, String(data))
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
      return params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} items`
    case 'maxItems':
      return `must have at most ${params.limit} items`
    case 'minProperties':
      return 'must have at least one field'
    case 'maxProperties':
      return `must have at most ${params.limit} fields`
    case 'uniqueItems':
      return 'must not contain duplicates'
    default:
      return message ?? 'is not valid'
  }
}

const standardFormats: Record<string, string> = {
  date: 'must be a date, such as 2026-11-14',
  'date-time': 'must be a time with a time zone, such as 2026-12-31T00:00:00Z',
}

/** Describes the format in words, never by its regular expression. */
function formatProblem({ format = '', examples }: Keywords, text: string): string {
  const known = formats[format]?.(text) ?? standardFormats[format]
  if (known) return known
  return examples?.length
    ? `has an invalid format; expected, for example, ${examples[0]}`
    : 'has an invalid format'
}

function range({ minimum, maximum }: Keywords): string {
  if (minimum === undefined) return `must be at most ${maximum}`
  return maximum === undefined ? `must be at least ${minimum}` : `must be from ${minimum} to ${maximum}`
}

const pointerPart = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1')
