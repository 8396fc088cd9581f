import type { Route, TSchema } from '@slipway/contract'
import { Ajv, type ValidateFunction } from 'ajv'
import addFormatsModule from 'ajv-formats'
import { Failure } from '../domain/failure.ts'
import { formats } from '../domain/formats.ts'
import { isUuid } from '../domain/ids.ts'
import { oneOf } from '../domain/nearest.ts'
import { requireCleanText } from './body.ts'
import { normalize } from './normalize.ts'
import { onFirstUse } from './on-first-use.ts'
import { describe, type Part, type Problem, unknownName } from './wording.ts'

const addFormats = addFormatsModule as unknown as (ajv: Ajv) => Ajv
const common = { allErrors: false, strict: false, messages: true, verbose: true } as const
/** For bodies, which `normalize` has already changed. This validator changes nothing. */
const exact = addFormats(new Ajv(common))
/** For query strings, which are text. This validator converts numbers and booleans. */
const fromText = addFormats(new Ajv({ ...common, coerceTypes: true }))
for (const ajv of [exact, fromText])
  for (const [name, problem] of Object.entries(formats)) ajv.addFormat(name, (text) => problem(text) === null)

export interface RouteValidators {
  params(values: Record<string, string>): void
  /** Removes empty parameters. */
  query(values: Record<string, unknown>): void
  /** Returns the body without null in optional fields, and with ids in lower case. */
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
      for (const name of ids) if (!isUuid(values[name]!)) throw invalidParameter(name, 'must be a UUID')
    },
    query(values) {
      for (const name in values) {
        const value = values[name]
        if (Array.isArray(value)) throw invalidParameter(name, 'must be given only once')
        requireCleanText(String(value))
        if (value === '') delete values[name]
      }
      if (query) {
        normalize(querySchema, values)
        check(query(), values, 'query')
      } else if (Object.keys(values).length > 0)
        throw invalid(Object.keys(values).map((name) => unknownName(name, name, [])))
    },
    body(value) {
      if (body) {
        const read = normalize(bodySchema, value)
        body()(read)
        return read
      }
      if (value !== undefined && value !== null && !isEmptyObject(value))
        throw invalidParameter('', 'This endpoint does not accept a body')
      return value
    },
  }
}

const isEmptyObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

interface Form {
  properties: Record<string, { const?: unknown }>
  /** The fields that distinguish the form: the first required field, or all fields if none is required. */
  keyFields: string[]
  validate: ValidateFunction
}

/** For a union, reports the errors of the form that the caller probably meant, not of all forms. */
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
    const keyFields = required?.[0] === undefined ? Object.keys(properties) : [required[0]]
    return { properties, keyFields, validate: exact.compile(member) }
  })
  return (value) => {
    if (forms.some(({ validate }) => validate(value))) return
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) requireOneForm(forms, value)
    const likely = forms.toSorted((a, b) => overlap(b, value) - overlap(a, value))[0]!
    check(likely.validate, value, 'body')
  }
}

/** Throws if the body has the distinguishing fields of no form, or of more than one form. */
function requireOneForm(forms: Form[], value: object): void {
  const keyFields = [...new Set(forms.flatMap((form) => form.keyFields))]
  const given = [
    ...new Set(
      forms.flatMap((form) => form.keyFields.filter((name) => Object.hasOwn(value, name)).slice(0, 1)),
    ),
  ]
  const [only] = keyFields
  if (keyFields.length === 1 && only !== undefined) {
    const choices = forms.map(({ properties }) => String(properties[only]?.const))
    const content = (value as Record<string, unknown>)[only]
    if (!choices.includes(content as string)) throw invalidParameter(`/${only}`, oneOf(content, choices))
  } else if (given.length === 0) throw new Failure('invalid_argument', `Send ${choiceOf(forms)}.`)
  else if (given.length > 1) {
    const message = `must not be sent with ${given.slice(1).join(' and ')}: send ${choiceOf(forms)}`
    throw invalidParameter(`/${given[0]}`, message)
  }
}

/** Returns, for example, `either size, or any of name, description`, or `exactly one of vm, start_vm_id`. */
function choiceOf(forms: Form[]): string {
  const [single, several] = [true, false].map((isSingle) =>
    forms
      .filter(({ keyFields }) => (keyFields.length === 1) === isSingle)
      .flatMap(({ keyFields }) => keyFields),
  ) as [string[], string[]]
  const names = [...new Set(single)]
  const one = names.length === 1 ? names[0]! : `exactly one of ${names.join(', ')}`
  return several.length === 0 ? one : `either ${one}, or any of ${several.join(', ')}`
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
  // An invalid field name gives two errors; the error of propertyNames repeats the other one.
  const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames')
  throw invalid(errors.map((error) => describe(error, part)))
}

/** `message` continues a sentence that begins with the field. */
export const invalidParameter = (field: string, message: string): Failure => invalid([{ field, message }])

function invalid(problems: Problem[]): Failure {
  const details = problems.map(({ field, message }) => ({ field, message }))
  const [first] = problems
  const where = first?.field ? `${first.field.replace(/^\//, '')} ` : ''
  const text = first?.sentence ?? `${where}${first?.message ?? 'The request is malformed'}`
  return new Failure('invalid_argument', /[.?]$/.test(text) ? text : `${text}.`, { details })
}
