import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import {
  emailPattern,
  labelKeyPattern,
  labelValuePattern,
  maxLabels,
  plainTextPattern,
  resourceNamePattern,
  uuidOrEmptyPattern,
  uuidPattern,
} from './names.ts'
import { sorts } from './states.ts'

/** Schemas by component name. The OpenAPI document refers to them instead of repeating them. */
export const components = new Map<string, TSchema>()

interface RecordOptions {
  description?: string
  examples?: unknown[]
}

/** A record in a response. Later versions may add fields, so clients must ignore unknown fields. */
export function record<P extends TProperties>(
  name: string,
  properties: P,
  options: RecordOptions = {},
): TObject<P> {
  return named(name, Type.Object(properties, { ...options }))
}

/** A request body. Unknown fields are rejected. */
export function body<P extends TProperties>(
  name: string,
  properties: P,
  options: RecordOptions = {},
): TObject<P> {
  return named(name, Type.Object(properties, { ...options, additionalProperties: false }))
}

function named<S extends TSchema>(name: string, schema: S): S {
  if (components.has(name)) throw new Error(`two schemas are named ${name}`)
  Object.assign(schema, { title: name })
  components.set(name, schema)
  return schema
}

export const Uuid = Type.String({
  format: 'uuid',
  pattern: uuidPattern,
  description: 'Requests may use upper or lower case; responses use lower case.',
  examples: ['0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'],
})
export const UuidOrEmpty = Type.String({
  format: 'uuid-or-empty',
  pattern: uuidOrEmptyPattern,
  description: 'A UUID, or the empty string if not set.',
})
const utcPattern = '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z'
export const Timestamp = Type.String({
  description: 'ISO 8601 in UTC with milliseconds, or the empty string if not set.',
  pattern: `^(${utcPattern})?$`,
  examples: ['2026-11-14T23:50:00.000Z'],
})
export const NonEmptyTimestamp = Type.String({
  description: 'ISO 8601 in UTC with milliseconds.',
  pattern: `^${utcPattern}$`,
  examples: ['2026-11-14T23:50:00.000Z'],
})
/** A timestamp that a client sends: any ISO 8601 instant with a zone. */
export const Instant = Type.String({ format: 'date-time', examples: ['2026-12-31T00:00:00Z'] })
export const UtcDate = Type.String({
  format: 'date',
  pattern: '^\\d{4}-\\d{2}-\\d{2}$',
  examples: ['2026-11-14'],
})
export const ResourceName = Type.String({
  format: 'resource-name',
  pattern: resourceNamePattern,
  description: 'At most 63 letters, digits, `_` and `-`, starting with a letter or digit.',
  examples: ['train-7'],
})
/** Text on one line, without control characters and direction marks. */
export const PlainText = (limits: { minLength?: number; maxLength: number; examples?: string[] }) =>
  Type.String({ ...limits, format: 'plain-text', pattern: plainTextPattern })
/** A display name, which is not an identifier. */
export const DisplayName = PlainText({ minLength: 1, maxLength: 100, examples: ['Research'] })
/** A description on one line. */
export const Description = PlainText({ maxLength: 500, examples: ['Fine-tuning run of November'] })
/** The limits of labels, for descriptions. */
export const labelLimits =
  'At most 32 labels. A key has at most 63 lower-case letters, digits, `.`, `_`, `/` and `-`, and starts and ends with a letter or digit. A value has at most 63 letters, digits, `.`, `_` and `-`.'
export const Labels = Type.Unsafe<Record<string, string>>({
  type: 'object',
  maxProperties: maxLabels,
  propertyNames: { type: 'string', format: 'label-key', pattern: labelKeyPattern },
  additionalProperties: { type: 'string', format: 'label-value', pattern: labelValuePattern },
  description: labelLimits,
  examples: [{ team: 'ml', stage: 'prod' }],
})
export type Labels = Static<typeof Labels>
export const Email = Type.String({
  format: 'email-address',
  minLength: 3,
  maxLength: 254,
  pattern: emailPattern,
  examples: ['ada@example.com'],
})
export const Password = Type.String({ minLength: 8, maxLength: 256 })
export const Usd = Type.Number({ description: 'US dollars.' })
export const Empty = record('Empty', {}, { description: 'An empty object.', examples: [{}] })

/** `{items}`: the complete list. */
export function wholeList<S extends TSchema>(name: string, item: S) {
  return record(name, { items: Type.Array(item) })
}

/** `{items, next_page_token}`: one page of a list. */
export function pagedList<S extends TSchema>(name: string, item: S) {
  return record(name, {
    items: Type.Array(item),
    next_page_token: Type.String({
      description: 'Pass this as `page_token` to get the next page. Empty on the last page.',
    }),
  })
}

export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 500,
      default: 100,
      description: 'The maximum number of items per page.',
    }),
  ),
  page_token: Type.Optional(
    Type.String({ maxLength: 1000, description: 'The `next_page_token` of the previous page.' }),
  ),
}

/** The label filter of a list. */
export const labelQuery = {
  label_selector: Type.Optional(
    Type.String({
      maxLength: 8_000,
      format: 'label-selector',
      description:
        'Comma-separated conditions that must all be true: `team=ml`, `stage!=test` (another value, or no such label), `gpu-job` (has the label), `!old` (does not have the label).',
      examples: ['team=ml,stage!=test,gpu-job,!old'],
    }),
  ),
}

/** The order of a list. A page token is valid only with the order of the list that returned it. */
export const sortQuery = {
  sort: Type.Optional(
    Type.Enum([...sorts], {
      default: '-created_at',
      description: 'The field to sort by; `-` means descending order. Items without a price come last.',
    }),
  ),
}

export const PageQuery = Type.Object(pageQuery)

/** A comma-separated filter, with a fixed set of values if `values` is given. */
export const CommaList = (description: string, values?: readonly string[]) =>
  Type.Optional(
    Type.String({
      maxLength: 20_000,
      description: `${description}, comma-separated${values ? `: ${values.map((value) => `\`${value}\``).join(', ')}` : ''}.`,
    }),
  )

export type { Static, TSchema }
