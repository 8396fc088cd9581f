/** A value that is not known before the apply. */
export const unknown = Symbol('unknown')

export type Value = null | string | number | boolean | typeof unknown | Value[] | Values
export interface Values {
  [name: string]: Value
}

/** Terraform's types of values. */
export type ValueType =
  | 'string'
  | 'number'
  | 'bool'
  | { list: ValueType }
  | { set: ValueType }
  | { map: ValueType }
  | { object: Record<string, ValueType> }

/** An attribute of a resource, a data source or the provider. */
export interface Attribute {
  name: string
  /** The type, or the attributes of a nested object or of a list or set of objects. */
  type: ValueType | { nesting: 'single' | 'list' | 'set'; attributes: Attribute[] }
  description: string
  /** Determines whether a configuration must set, can set or cannot set the attribute. */
  use: 'required' | 'optional' | 'output'
  /** True if the provider sets a value when the configuration does not. Always true for outputs. */
  isComputed: boolean
  isSensitive?: boolean
}

/** The type of the whole state of a resource. */
export const stateType = (attributes: Attribute[]): ValueType => ({
  object: Object.fromEntries(attributes.map((attribute) => [attribute.name, typeOf(attribute)])),
})

export function typeOf({ type }: Attribute): ValueType {
  if (typeof type === 'string' || !('nesting' in type)) return type
  const object = stateType(type.attributes)
  if (type.nesting === 'single') return object
  return type.nesting === 'list' ? { list: object } : { set: object }
}

export const isKnown = (value: Value): boolean => {
  if (value === unknown) return false
  if (Array.isArray(value)) return value.every(isKnown)
  return typeof value !== 'object' || value === null || Object.values(value).every(isKnown)
}

export const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
