import { type Route, type TSchema, uuidPattern } from '@slipway/contract'
import fc, { type Arbitrary } from 'fast-check'

/** The keywords that our schemas use. */
interface Schema {
  type?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  properties?: Record<string, Schema>
  required?: string[]
  examples?: unknown[]
}

/** Values that have caused errors in parsers, validators or databases. */
const odd: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown[]>(
    ...[null, true, false, 0, -0, -1, 1.5, 1e308, -1e308, 2 ** 31, 2 ** 53, 5e-324],
    ...[
      '',
      ' ',
      '0',
      '-1',
      'null',
      'true',
      'a\0b',
      '\ud800',
      '\uffff',
      '💥',
      '../../etc/passwd',
      "'; --",
      '%',
      '_',
    ],
    ...[
      '010.0.0.1',
      '::1',
      '0.0.0.0/0',
      '10.0.0.0/33',
      '1GiB',
      '99999999TiB',
      '-1GiB',
      '2026-02-30',
      '9999-12-31',
    ],
    ...['0001-01-01T00:00:00Z', '+275760-09-13T00:00:00.001Z', '2026-12-31T23:59:60Z', 'ssh-rsa AAAA', '#!'],
    ...[[], {}, [[]], [null], { toString: 1 }, { __proto__: null }, JSON.parse('{"__proto__": {"a": 1}}')],
    ...['x'.repeat(70_000), '\u0301'.repeat(300), Array.from({ length: 600 }, () => 'a')],
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.integer(),
  fc.double(),
  fc.uuid(),
  fc.jsonValue({ maxDepth: 3 }),
)

/** Generates values that mostly match the schema; any part may be replaced by an odd value. */
function mostlyValid(schema: Schema, ids: string[]): Arbitrary<unknown> {
  return fc.oneof({ weight: 14, arbitrary: validValue(schema, ids) }, { weight: 1, arbitrary: odd })
}

function validValue(schema: Schema, ids: string[]): Arbitrary<unknown> {
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((member) => validValue(member, ids)))
  switch (schema.type) {
    case 'string':
      return text(schema, ids)
    case 'integer':
    case 'number':
      return number(schema)
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(mostlyValid(schema.items ?? {}, ids), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 5, 5),
      })
    case 'object':
      return object(schema, ids)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

const generators = new Map<string, Arbitrary<string>>()
/** Building a generator from a pattern takes longer than sending a request, so each is built once. */
function textMatching(pattern: string): Arbitrary<string> {
  const generator = generators.get(pattern) ?? fc.stringMatching(new RegExp(pattern))
  generators.set(pattern, generator)
  return generator
}

function text(schema: Schema, ids: string[]): Arbitrary<unknown> {
  const examples = (schema.examples ?? []).map((example) => fc.constant(example))
  if (schema.pattern === uuidPattern) return fc.oneof(fc.constantFrom(...ids), fc.uuid())
  if (schema.format === 'date-time')
    return fc.oneof(
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      ...examples,
    )
  const own = schema.pattern
    ? textMatching(schema.pattern)
    : fc.string({ minLength: schema.minLength ?? 0, maxLength: Math.min(schema.maxLength ?? 60, 60) })
  const known = fc.constantFrom(
    ...['us-east1-a', 'eu-north1-a', 'a100.1x', 'a40.8x', 'ubuntu24.04-nvidia', 'A40 48GB PCIe'],
    ...[
      '10.20.0.0/16',
      '10.20.1.0/24',
      '0.0.0.0/0',
      '22',
      '3000-8080',
      'http://127.0.0.1:9/hook',
      'owner@example.com',
    ],
    ...ids,
  )
  return fc.oneof(own, known, ...examples)
}

function number({ minimum, maximum, type }: Schema): Arbitrary<unknown> {
  const [min, max] = [minimum ?? -1000, maximum ?? 1_000_000]
  return type === 'integer' ? fc.integer({ min, max }) : fc.double({ min, max, noNaN: true })
}

function object(schema: Schema, ids: string[]): Arbitrary<unknown> {
  const properties = Object.entries(schema.properties ?? {})
  if (properties.length === 0)
    return fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 2 }))
  const whole = fc.record(
    Object.fromEntries(properties.map(([name, property]) => [name, mostlyValid(property, ids)])),
    { requiredKeys: schema.required ?? [] },
  )
  const strayName = fc.constantFrom('id', 'unknown', '__proto__', 'constructor', '')
  return fc.oneof(
    { weight: 20, arbitrary: whole },
    {
      weight: 1,
      arbitrary: fc.tuple(whole, strayName, odd).map(([all, name, value]) => ({ ...all, [name]: value })),
    },
    // The first property is missing.
    { weight: 1, arbitrary: whole.map((all) => Object.fromEntries(Object.entries(all).slice(1))) },
  )
}

export interface OddRequest {
  method: string
  path: string
  body?: string
  headers: Record<string, string>
}

/** Generates requests to a route: valid, almost valid and invalid ones. `ids` are ids of existing resources. */
export function requestsTo(
  route: Route,
  paramsOf: (name: string) => string[],
  ids: string[],
): Arbitrary<OddRequest> {
  const paramNames = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  const garbage = fc.oneof(
    fc.uuid(),
    fc.string({ minLength: 1, unit: 'binary' }),
    fc.constantFrom('operations', '0'),
  )
  const params = fc.record(
    Object.fromEntries(
      paramNames.map((name) => [
        name,
        fc.oneof(
          { weight: 12, arbitrary: fc.constantFrom(...paramsOf(name)) },
          { weight: 1, arbitrary: garbage.filter((value) => value.isWellFormed() && !/^\.+$/.test(value)) },
        ),
      ]),
    ),
  )
  const queryOf = (schema: TSchema) =>
    object({ ...(schema as Schema), required: (schema as Schema).required ?? [] }, ids) as Arbitrary<
      Record<string, unknown>
    >
  const query = route.query ? fc.oneof(fc.constant({}), queryOf(route.query)) : fc.constant({})
  const json = route.body ? mostlyValid(route.body as Schema, ids) : fc.constant(undefined)
  const body = fc.oneof(
    { weight: 40, arbitrary: json.map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 200 }) },
  )
  const headers = fc.record(
    {
      'idempotency-key': fc.oneof(
        { weight: 1, arbitrary: fc.constantFrom('a', 'b', 'c') },
        { weight: 6, arbitrary: textMatching('^[\\x21-\\x7e]{8,40}$') },
      ),
      'x-request-id': textMatching('^[\\x20-\\x7e]{0,140}$'),
      accept: fc.constantFrom('*/*', 'application/json', 'text/csv', 'text/html', 'image/png'),
    },
    { requiredKeys: [] },
  )
  return fc.record({ params, query, body, headers }).map((parts) => {
    const filled = route.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(parts.params[name])),
    )
    const text = new URLSearchParams(
      Object.entries(parts.query ?? {}).map(([name, value]): [string, string] => [
        name,
        typeof value === 'string' ? value : String(JSON.stringify(value)),
      ]),
    ).toString()
    return {
      method: route.method,
      path: text ? `${filled}?${text}` : filled,
      headers: parts.headers,
      ...(route.method !== 'GET' && parts.body !== undefined && { body: parts.body }),
    }
  })
}
