import { routeIds, routeOf } from '@slipway/contract'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formats } from '../../src/domain/formats.ts'

interface Schema {
  pattern?: string
  format?: string
  examples?: unknown[]
}

function* nodes(value: unknown): Generator<Schema> {
  if (typeof value !== 'object' || value === null) return
  yield value as Schema
  for (const member of Object.values(value)) yield* nodes(member)
}

/** Every request string that must have a format, by the name of the format. */
const wanted = new Map<string, Schema>()
for (const id of routeIds) {
  const { body, query } = routeOf(id)
  for (const schema of nodes([body, query]))
    if (typeof schema.pattern === 'string') wanted.set(schema.format ?? schema.pattern, schema)
}

test('every format of a request string is described in words', () => {
  for (const name of wanted.keys()) expect(['date', ...Object.keys(formats)]).toContain(name)
  for (const [name, problem] of Object.entries(formats)) {
    const words = problem('\0 ^$') ?? ''
    expect([name, words.length > 0, /\\|\^|\$|\{\d|\(\?/.test(words)]).toEqual([name, true, false])
  }
})

test('a string that does not match its format gets an error in words', () => {
  for (const [name, { pattern }] of wanted) {
    const problem = formats[name]
    if (!problem || !pattern) continue
    const expression = new RegExp(pattern)
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(expression)), (text) => {
        if (!expression.test(text)) expect([name, text, problem(text)]).not.toEqual([name, text, null])
      }),
    )
  }
})

test('the example of each format matches that format', () => {
  for (const [name, { examples = [] }] of wanted)
    for (const example of examples)
      expect([name, formats[name]?.(String(example)) ?? null]).toEqual([name, null])
})

test.each([
  ['disk-size', '100', '100GiB'],
  ['disk-size', '100gb', '100GiB'],
  ['disk-size', ' 2 TB ', '2TiB'],
  ['disk-size', '0.3TiB', '308GiB'],
  ['disk-size', '0GiB', '1GiB'],
  ['resource-name', '-héllo wörld-', 'hello-world'],
  ['resource-name', 'x'.repeat(70), 'x'.repeat(63)],
  ['ipv4-cidr', '10.20.30.40/16', '10.20.0.0/16'],
  ['ipv4-cidr-or-address', '255.255.255.255/0', '0.0.0.0/0'],
  ['port-range', '80:90', '80-90'],
  ['port-range', '70000', '65535'],
  ['port-range', '022', '22'],
])('the nearest %s to %j is %s', (format, text, nearest) => {
  expect(formats[format]!(text)).toContain(`; did you mean ${nearest}?`)
  expect(formats[format]!(nearest)).toBeNull()
})
