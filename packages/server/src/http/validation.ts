import type { Route, TSchema } from '@slipway/contract'
import { Ajv, type ValidateFunction } from 'ajv'
import addFormatsModule from 'ajv-formats'
import { Failure, type FieldProblem } from '../domain/failure.ts'
import { formats } from '../domain/formats.ts'
import { isUuid } from '../domain/ids.ts'
import { oneOf } from '../domain/nearest.ts'
import { requireCleanText } from './body.ts'
import { onFirstUse } from './on-first-use.ts'
import { readAs } from './reading.ts'
import { describe, type Part } from './wording.ts'

const addFormats = addFormatsModule as unknown as (ajv: Ajv) => Ajv
const common = { allErrors: false, strict: false, messages: true, verbose: true } as const
/** Bodies: nothing is coerced, stripped or filled in. */
const exact = addFormats(new Ajv(common))
/** Query strings are text: numbers and booleans are read from it. */
const fromText = addFormats(new Ajv({ ...common, coerceTypes: true }))
for (const ajv of [exact, fromText])
  for (const [name, problem] of Object.entries(formats)) ajv.addFormat(name, (text) => problem(text) === null)

export interface RouteValidators {
  params(values: Record<string, string>): void
  /** Leaves out what is empty. */
  query(values: Record<string, unknown>): void
  /** Returns the body as it is to be understood: without nulls, with ids in lower case. */
  body(value: unknown): unknown
}

export function compileValidators(route: Route): RouteValidators {
  const { query: querySchema, body: bodySchema } = route
  const query =
    querySchema && onFirstUse(() => fromText.compile({ ...querySchema, additionalProperties: false }))
  const body = bodySchema && onFirstUse(() => compileBody(bodySchema))
  const ids = Array.from(route.path.matchAll(/\{(\w+_id)\}/g), ([, name]) => name!)
  return {
    params(values) {
      for (const name of ids)
        if (!isUuid(values[name]!)) throw invalid([{ field: name, message: 'must be a UUID' }])
    },
    query(values) {
      for (const name in values) {
        const value = values[name]
        if (Array.isArray(value)) throw invalid([{ field: name, message: 'must be given once' }])
        requireCleanText(String(value))
        if (value === '') delete values[name]
      }
      if (query) {
        readAs(querySchema, values)
        check(query(), values, 'query')
      } else if (Object.keys(values).length > 0)
        throw invalid(
          Object.keys(values).map((field) => ({ field, message: 'is not a parameter of this call' })),
        )
    },
    body(value) {
      if (body) {
        const read = readAs(bodySchema, value)
        body()(read)
        return read
      }
      if (value !== undefined && value !== null && !isEmptyObject(value))
        throw invalid([{ field: '', message: 'this call takes no body' }])
      return value
    },
  }
}

const isEmptyObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

/** A form of a union, and the members that tell it from the others: the first that it requires, or else any. */
interface Form {
  properties: Record<string, { const?: unknown }>
  heads: string[]
  validate: ValidateFunction
}

/** Errors of a union are told for the form that was meant, not for all at once. */
function compileBody(schema: TSchema): (value: unknown) => void {
  const members = (
    schema as { anyOf?: (TSchema & { properties: Form['properties']; required?: string[] })[] }
  ).anyOf
  if (!members) {
    const validate = exact.compile(schema)
    return (value) => check(validate, value, 'body')
  }
  const forms = members.map((member): Form => {
    const { properties, required } = member
    const heads = required?.[0] === undefined ? Object.keys(properties) : [required[0]]
    return { properties, heads, validate: exact.compile(member) }
  })
  return (value) => {
    if (forms.some(({ validate }) => validate(value))) return
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) requireOneForm(forms, value)
    const meant = forms.toSorted((a, b) => overlap(b, value) - overlap(a, value))[0]!
    check(meant.validate, value, 'body')
  }
}

/** Says what there is to choose from when nothing tells which form is meant, or two things do. */
function requireOneForm(forms: Form[], value: object): void {
  const heads = [...new Set(forms.flatMap((form) => form.heads))]
  const given = [
    ...new Set(forms.flatMap((form) => form.heads.filter((name) => Object.hasOwn(value, name)).slice(0, 1))),
  ]
  const [only] = heads
  if (heads.length === 1 && only !== undefined) {
    const choices = forms.map(({ properties }) => String(properties[only]?.const))
    const content = (value as Record<string, unknown>)[only]
    if (!choices.includes(content as string))
      throw invalid([{ field: `/${only}`, message: oneOf(content, choices) }])
  } else if (given.length === 0) throw new Failure('invalid_argument', `Send ${choiceOf(forms)}.`)
  else if (given.length > 1) {
    const message = `must not be sent with ${given.slice(1).join(' and ')}: send ${choiceOf(forms)}`
    throw invalid([{ field: `/${given[0]}`, message }])
  }
}

/** `exactly one of size, or any of name, description`. */
function choiceOf(forms: Form[]): string {
  const [single, several] = [true, false].map((isSingle) =>
    forms.filter(({ heads }) => (heads.length === 1) === isSingle).flatMap(({ heads }) => heads),
  ) as [string[], string[]]
  const one = `exactly one of ${[...new Set(single)].join(', ')}`
  return several.length === 0 ? one : `${one}, or any of ${several.join(', ')}`
}

function overlap({ properties }: Form, value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [name, content]) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!property) return sum
    return sum + (property.const !== undefined && property.const === content ? 10 : 1)
  }, 0)
}

function check(validate: ValidateFunction, value: unknown, part: Part): void {
  if (validate(value)) return
  // Of a bad member name the keyword itself says nothing that its own finding did not.
  const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames')
  throw invalid(errors.map((error) => describe(error, part)))
}

export function invalid(details: FieldProblem[]): Failure {
  const [first] = details
  const where = first?.field ? `${first.field.replace(/^\//, '')} ` : ''
  const text = `${where}${first?.message ?? 'The request is malformed'}`
  return new Failure('invalid_argument', /[.?]$/.test(text) ? text : `${text}.`, { details })
}
