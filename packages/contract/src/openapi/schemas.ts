import { components } from '../schema.ts'

export type Json = { [key: string]: unknown }

/** Converts schemas for the document. Named schemas become references and are collected. */
export function schemaPrinter() {
  const used = new Map<string, Json>()

  function print(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map(print)
    if (typeof schema !== 'object' || schema === null) return schema
    const { title } = schema as { title?: string }
    if (title === undefined || !components.has(title)) return body(schema)
    if (!used.has(title)) {
      used.set(title, {})
      used.set(title, body(components.get(title) as object))
    }
    return { $ref: `#/components/schemas/${title}` }
  }

  function body(schema: object): Json {
    const printed: Json = {}
    for (const [key, value] of Object.entries(schema)) {
      if (key === 'title') continue
      // The values of these keys are data, not schemas, so a field with the name `title` is kept.
      if (
        key === 'examples' ||
        key === 'enum' ||
        key === 'required' ||
        key === 'default' ||
        key === 'const'
      ) {
        printed[key] = value
      } else if (key === 'properties') {
        printed[key] = Object.fromEntries(
          Object.entries(value as object).map(([name, property]) => [name, print(property)]),
        )
      } else if (key === 'patternProperties') printed.additionalProperties = true
      else printed[key] = print(value)
    }
    const values = printed.enum as unknown[] | undefined
    if (values && !printed.type) {
      return { type: values.every((value) => typeof value === 'string') ? 'string' : 'integer', ...printed }
    }
    return printed
  }

  const collected = (): Json =>
    Object.fromEntries([...used].sort(([left], [right]) => (left < right ? -1 : 1)))

  return { print, collected }
}
