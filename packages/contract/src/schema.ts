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

/** Schemas by their component name: the OpenAPI document refers to these instead of repeating them. */
export const components = new Map<string, TSchema>()

interface RecordOptions {
  description?: string
  examples?: unknown[]
}

/** A record in a response. It may gain members, and clients must ignore members that they do not know. */
export function record<P extends TProperties>(
  name: string,
  properties: P,
  options: RecordOptions = {},
): TObject<P> {
  return named(name, Type.Object(properties, { ...options }))
}

/** A request body: unknown members are refused. */
export function body<P extends TProperties>(
  name: string,
  properties: P,
  options: RecordOptions = {},
): TObject<P> {
  return named(name, Type.Object(properties, { ...options, additionalProperties: false }))
}

function named<S extends TSchema>(name: string, schema: S): S {
  if (components.has(name)) throw new Error(`two schemas are called ${name}`)
  Object.assign(schema, { title: name })
  components.set(name, schema)
  return schema
}

export const Uuid = Type.String({
  format: 'uuid',
  pattern: uuidPattern,
  description: 'Accepted in any letter case, answered in lower case.',
  examples: ['0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'],
})
export const UuidOrEmpty = Type.String({
  format: 'uuid-or-empty',
  pattern: uuidOrEmptyPattern,
  description: 'A UUID, or the empty string when unset.',
})
export const Timestamp = Type.String({
  description: 'ISO 8601 UTC with milliseconds; the empty string when unset.',
  pattern: '^(\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z)?$',
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
  description: 'Letters, digits, `_` and `-`, at most 63, starting with a letter or digit.',
  examples: ['train-7'],
})
/** Text that others see on one line: no control characters, no marks of direction. */
export const PlainText = (limits: { minLength?: number; maxLength: number; examples?: string[] }) =>
  Type.String({ ...limits, format: 'plain-text', pattern: plainTextPattern })
/** A display name: not an identifier. */
export const DisplayName = PlainText({ minLength: 1, maxLength: 100, examples: ['Research'] })
/** What people write beside a name, on one line. */
export const Description = PlainText({ maxLength: 500, examples: ['Fine-tuning run of November'] })
export const Labels = Type.Unsafe<Record<string, string>>({
  type: 'object',
  maxProperties: maxLabels,
  propertyNames: { type: 'string', format: 'label-key', pattern: labelKeyPattern },
  additionalProperties: { type: 'string', format: 'label-value', pattern: labelValuePattern },
  description:
    'At most 32. A key has lower-case letters, digits, `.`, `_`, `/` and `-`, at most 63, and begins and ends with a letter or digit; a value has letters, digits, `.`, `_` and `-`, at most 63.',
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
export const Empty = record('Empty', {}, { description: 'The answer of a deletion.', examples: [{}] })

/** `{items}`, whole. */
export function wholeList<S extends TSchema>(name: string, item: S) {
  return record(name, { items: Type.Array(item) })
}

/** `{items, next_page_token}`, a page at a time. */
export function pagedList<S extends TSchema>(name: string, item: S) {
  return record(name, {
    items: Type.Array(item),
    next_page_token: Type.String({
      description: 'Pass as `page_token` for the next page; empty at the end.',
    }),
  })
}

export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 500, default: 100, description: 'Items per page.' }),
  ),
  page_token: Type.Optional(Type.String({ maxLength: 1000, description: 'From the page before.' })),
}

/** Beside the other filters of a list. */
export const labelQuery = {
  label_selector: Type.Optional(
    Type.String({
      maxLength: 8_000,
      format: 'label-selector',
      description:
        'Conditions, comma-separated, that all have to hold: `team=ml`, `stage!=test` (another value or no such label), `gpu-job` (has it), `!old` (has it not).',
      examples: ['team=ml,stage!=test,gpu-job,!old'],
    }),
  ),
}

/** In which order; a page token belongs to the order that it was given in. */
export const sortQuery = {
  sort: Type.Optional(
    Type.Enum([...sorts], {
      default: '-created_at',
      description: 'The order; with a minus, the falling one. What has no price comes last.',
    }),
  ),
}

export const PageQuery = Type.Object(pageQuery)

/** A comma-separated filter, of a closed set of values if they are given. */
export const CommaList = (description: string, values?: readonly string[]) =>
  Type.Optional(
    Type.String({
      maxLength: 20_000,
      description: `${description}, comma-separated${values ? `: ${values.map((value) => `\`${value}\``).join(', ')}` : ''}.`,
    }),
  )

export type { Static, TSchema }
