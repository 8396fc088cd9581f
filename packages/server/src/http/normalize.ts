import type { TSchema } from '@slipway/contract'

/** The keywords that decide how a value is normalized. */
interface Schema {
  type?: string
  format?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
}

/**
 * Normalizes a parsed value in place, before it is validated: removes null from optional fields, and changes
 * ids to lower case.
 */
export const normalize = (schema: TSchema, value: unknown): unknown => normalizeAs(schema as Schema, value)

function normalizeAs(schema: Schema, value: unknown): unknown {
  if (typeof value === 'string') return isId(schema) ? value.toLowerCase() : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const { items } = schema
    if (items) for (const [index, item] of value.entries()) value[index] = normalizeAs(items, item)
    return value
  }
  for (const [name, member] of Object.entries(value)) {
    const property = propertyOf(schema, name)
    if (!property) continue
    if (member === null && property.isOptional && !allowsNull(property.schema))
      delete (value as Record<string, unknown>)[name]
    else (value as Record<string, unknown>)[name] = normalizeAs(property.schema, member)
  }
  return value
}

const isId = ({ format }: Schema) => format === 'uuid' || format === 'uuid-or-empty'

const allowsNull = ({ type, anyOf }: Schema): boolean => type === 'null' || (anyOf?.some(allowsNull) ?? false)

/** In a union, every property is optional, because another variant may not have it. */
function propertyOf(
  { properties, required, anyOf }: Schema,
  name: string,
): { schema: Schema; isOptional: boolean } | undefined {
  if (properties && Object.hasOwn(properties, name))
    return { schema: properties[name]!, isOptional: !required?.includes(name) }
  const found = anyOf?.map((variant) => propertyOf(variant, name)).find((each) => each !== undefined)
  return found && { ...found, isOptional: true }
}
