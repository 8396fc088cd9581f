import type { Route, TSchema } from '@slipway/contract'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import addFormatsModule from 'ajv-formats'
import { Failure, type FieldProblem } from '../domain/failure.ts'
import { isUuid } from '../domain/ids.ts'
import { requireCleanText } from './body.ts'

const addFormats = addFormatsModule as unknown as (ajv: Ajv) => Ajv
const common = { allErrors: false, strict: false, messages: true } as const
/** Bodies: nothing is coerced, stripped or filled in. */
const exact = addFormats(new Ajv(common))
/** Query strings are text: numbers and booleans are read from it. */
const fromText = addFormats(new Ajv({ ...common, coerceTypes: true }))

export interface RouteValidators {
  params(values: Record<string, string>): void
  query(values: Record<string, unknown>): void
  body(value: unknown): void
}

export function compileValidators(route: Route): RouteValidators {
  const query = route.query && fromText.compile({ ...route.query, additionalProperties: false })
  const body = route.body && compileBody(route.body)
  return {
    params(values) {
      for (const [name, value] of Object.entries(values))
        if (!isUuid(value)) throw invalid([{ field: name, message: 'must be a UUID in lower case' }])
    },
    query(values) {
      for (const value of Object.values(values)) {
        if (Array.isArray(value)) throw invalid([{ field: 'query', message: 'a parameter is given twice' }])
        requireCleanText(String(value))
      }
      if (query) check(query, values, 'query')
      else if (Object.keys(values).length > 0)
        throw invalid(
          Object.keys(values).map((field) => ({ field, message: 'is not a parameter of this call' })),
        )
    },
    body(value) {
      if (body) body(value)
      else if (value !== undefined && value !== null && !isEmptyObject(value))
        throw invalid([{ field: '', message: 'this call takes no body' }])
    },
  }
}

const isEmptyObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

/** Errors of a union are told for the member that shares the most fields with the value, not for all at once. */
function compileBody(schema: TSchema): (value: unknown) => void {
  const members = (schema as { anyOf?: TSchema[] }).anyOf
  if (!members) {
    const validate = exact.compile(schema)
    return (value) => check(validate, value, 'body')
  }
  const validators = members.map((member) => ({ member, validate: exact.compile(member) }))
  return (value) => {
    if (validators.some(({ validate }) => validate(value))) return
    const nearest = validators.toSorted((a, b) => overlap(b.member, value) - overlap(a.member, value))[0]!
    check(nearest.validate, value, 'body')
  }
}

function overlap(member: TSchema, value: unknown): number {
  const properties =
    (member as { properties?: Record<string, TSchema & { const?: unknown }> }).properties ?? {}
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [name, content]) => {
    const property = properties[name]
    if (!property) return sum
    return sum + (property.const !== undefined && property.const === content ? 10 : 1)
  }, 0)
}

function check(validate: ValidateFunction, value: unknown, part: 'query' | 'body'): void {
  if (!validate(value)) throw invalid((validate.errors ?? []).map((error) => describe(error, part)))
}

function describe(error: ErrorObject, part: 'query' | 'body'): FieldProblem {
  const at = part === 'query' ? error.instancePath.slice(1) : error.instancePath
  switch (error.keyword) {
    case 'required':
      return { field: join(at, error.params.missingProperty, part), message: 'is required' }
    case 'additionalProperties':
      return { field: join(at, error.params.additionalProperty, part), message: 'is not known here' }
    case 'enum':
      return { field: at, message: `must be one of ${error.params.allowedValues.join(', ')}` }
    case 'const':
      return { field: at, message: `must be ${JSON.stringify(error.params.allowedValue)}` }
    default:
      return { field: at, message: error.message ?? 'is not acceptable' }
  }
}

const join = (at: string, name: string, part: 'query' | 'body') => (part === 'query' ? name : `${at}/${name}`)

function invalid(details: FieldProblem[]): Failure {
  const [first] = details
  const where = first?.field ? `${first.field} ` : ''
  return new Failure('invalid_argument', `${where}${first?.message ?? 'The request is malformed'}.`, {
    details,
  })
}
