import type { TSchema } from '@slipway/contract'

/** The keywords that say how a value is to be read. */
interface Schema {
  type?: string
  format?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
}

/**
 * Brings a parsed value into the form that the rest of the service knows, before it is checked: an optional member that
 * is null counts as absent, and ids are in lower case. Changes the value in place and returns it.
 */
export const readAs = (schema: TSchema, value: unknown): unknown => read(schema as Schema, value)

function read(schema: Schema, value: unknown): unknown {
  if (typeof value === 'string') return isId(schema) ? value.toLowerCase() : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const { items } = schema
    if (items) for (const [index, item] of value.entries()) value[index] = read(items, item)
    return value
  }
  for (const [name, member] of Object.entries(value)) {
    const property = propertyOf(schema, name)
    if (!property) continue
    if (member === null && property.isOptional && !allowsNull(property.schema))
      delete (value as Record<string, unknown>)[name]
    else (value as Record<string, unknown>)[name] = read(property.schema, member)
  }
  return value
}

const isId = ({ format }: Schema) => format === 'uuid' || format === 'uuid-or-empty'

const allowsNull = ({ type, anyOf }: Schema): boolean => type === 'null' || (anyOf?.some(allowsNull) ?? false)

/** In a union every member can be left out, in favour of those of another form. */
function propertyOf(
  { properties, required, anyOf }: Schema,
  name: string,
): { schema: Schema; isOptional: boolean } | undefined {
  if (properties && Object.hasOwn(properties, name))
    return { schema: properties[name]!, isOptional: !required?.includes(name) }
  const found = anyOf?.map((member) => propertyOf(member, name)).find((each) => each !== undefined)
  return found && { ...found, isOptional: true }
}
