import { decode, ExtData, encode } from '@msgpack/msgpack'
import {
  type Attribute,
  isValues,
  stateType,
  unknown,
  type Value,
  type Values,
  type ValueType,
} from './types.ts'

/** A value on the wire: MessagePack, or JSON in an old state. */
export interface DynamicValue {
  msgpack: Uint8Array
  json?: Uint8Array
}

/**
 * Decodes the values of all attributes. Returns null if there is no object, as in the state before a
 * creation.
 */
export function decodeState(given: DynamicValue | null, attributes: Attribute[]): Values | null {
  if (!given) return null
  const raw = given.msgpack?.length ? decode(given.msgpack) : parseJson(given.json)
  return fromWire(raw, stateType(attributes)) as Values | null
}

export function encodeState(values: Values | null, attributes: Attribute[]): DynamicValue {
  return { msgpack: encode(toWire(values, stateType(attributes))) }
}

/** Decodes a state, possibly from another version of the provider. Drops attributes that no longer exist. */
export function decodeJsonState(json: Uint8Array, attributes: Attribute[]): Values | null {
  return fromWire(parseJson(json), stateType(attributes)) as Values | null
}

const parseJson = (json: Uint8Array | undefined): unknown =>
  json?.length ? JSON.parse(Buffer.from(json).toString('utf8')) : null

function fromWire(raw: unknown, type: ValueType): Value {
  if (raw === null || raw === undefined) return null
  if (raw instanceof ExtData) return unknown
  // Terraform sends a number as decimal digits if a float cannot represent it exactly.
  if (type === 'number') return Number(raw)
  if (typeof type === 'string') return raw as Value
  if ('object' in type) {
    const given = raw as Record<string, unknown>
    return Object.fromEntries(
      Object.entries(type.object).map(([name, member]) => [name, fromWire(given[name], member)]),
    )
  }
  if ('map' in type)
    return Object.fromEntries(
      Object.entries(raw as Record<string, unknown>).map(([name, member]) => [
        name,
        fromWire(member, type.map),
      ]),
    )
  const item = 'list' in type ? type.list : type.set
  return (raw as unknown[]).map((each) => fromWire(each, item))
}

function toWire(value: Value | undefined, type: ValueType): unknown {
  if (value === null || value === undefined) return null
  if (value === unknown) return new ExtData(0, new Uint8Array([0]))
  // A fraction is sent as decimal digits, because a float would not equal the configured number (0.1).
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : String(value)
  if (typeof type === 'string') return value
  if ('object' in type) {
    const given = value as Values
    return Object.fromEntries(
      Object.entries(type.object).map(([name, member]) => [name, toWire(given[name], member)]),
    )
  }
  if ('map' in type)
    return Object.fromEntries(
      Object.entries(value as Values).map(([name, member]) => [name, toWire(member, type.map)]),
    )
  const item = 'list' in type ? type.list : type.set
  return (value as Value[]).map((each) => toWire(each, item))
}

/** Returns the type in Terraform's notation. */
export function ctyType(type: ValueType): unknown {
  if (typeof type === 'string') return type
  const [[kind, inner]] = Object.entries(type) as [[string, ValueType | Record<string, ValueType>]]
  if (kind === 'object')
    return [
      kind,
      Object.fromEntries(Object.entries(inner as object).map(([name, member]) => [name, ctyType(member)])),
    ]
  return [kind, ctyType(inner as ValueType)]
}

/** Returns whether two values are the same. Ignores the order of items, and fields that are not set. */
export function isSame(left: Value, right: Value): boolean {
  return canonical(left) === canonical(right)
}

function canonical(value: Value): string {
  if (value === unknown) return '<unknown>'
  if (Array.isArray(value)) return `[${value.map(canonical).toSorted().join()}]`
  if (!isValues(value)) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== null && member !== '')
  return `{${members
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
    .toSorted()
    .join()}}`
}
