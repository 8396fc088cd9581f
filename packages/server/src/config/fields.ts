import { parseCidr } from '@slipway/contract'
import { isAddressBlock } from '../domain/address-blocks.ts'
import { didYouMean, nearest } from '../domain/nearest.ts'

/**
 * An error in the configuration or on the command line. The message names the setting, its value unless it is secret, and the
 * nearest valid value, if there is one.
 */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

/** Returns the checked value, or throws a ConfigError whose message begins with `key`. */
export type Check<T> = (value: unknown, key: string) => T

export interface Field<T> {
  check: Check<T>
  /** The default. Without it, the key is required. */
  fallback?: T
}

export function field<T>(check: Check<T>, fallback?: NoInfer<T>): Field<T> {
  return fallback === undefined ? { check } : { check, fallback }
}

const maxShownChars = 80

function displayText(value: unknown): string {
  const text = value instanceof Date ? value.toString() : (JSON.stringify(value) ?? String(value))
  return text.length <= maxShownChars ? text : `${text.slice(0, maxShownChars)}…`
}

export function refuse(key: string, value: unknown, rule: string): never {
  throw new ConfigError(`${key} = ${displayText(value)}: ${rule}`)
}

export const anything: Check<unknown> = (value) => value

export const text: Check<string> = (value, key) =>
  typeof value === 'string' ? value : refuse(key, value, 'must be a string in quotes')

export const filledText: Check<string> = (value, key) =>
  text(value, key) || refuse(key, value, 'must not be empty')

export const flag: Check<boolean> = (value, key) =>
  typeof value === 'boolean' ? value : refuse(key, value, 'must be true or false')

export function optional<T>(check: Check<T>): Check<T | ''> {
  return (value, key) => (value === '' ? '' : check(value, key))
}

export function pattern(shape: RegExp, rule: string): Check<string> {
  return (value, key) =>
    typeof value === 'string' && shape.test(value) ? value : refuse(key, value, `must be ${rule}`)
}

function nearestInQuotes(value: unknown, choices: readonly string[]): string | undefined {
  const near = nearest(String(value), choices)
  return near && `"${near}"`
}

export const envName = pattern(/^([A-Za-z_][A-Za-z0-9_]*)?$/, 'the name of an environment variable')

export function choice<T extends string>(choices: readonly T[]): Check<T> {
  return (value, key) =>
    choices.find((candidate) => candidate === value) ??
    refuse(key, value, `must be one of ${choices.join(', ')}${didYouMean(nearestInQuotes(value, choices))}`)
}

/** Suggests the nearest number in the range, even for a number in quotes. */
function numeric(min: number, max: number, isWhole: boolean): Check<number> {
  const rule = `must be a ${isWhole ? 'whole ' : ''}number from ${min} to ${max}`
  return (value, key) => {
    if (typeof value === 'number' && value >= min && value <= max && (!isWhole || Number.isInteger(value))) {
      return value
    }
    const asNumber =
      typeof value === 'number' || typeof value === 'string' ? Number.parseFloat(`${value}`) : NaN
    if (Number.isNaN(asNumber)) return refuse(key, value, rule)
    const inside = Math.min(max, Math.max(min, isWhole ? Math.round(asNumber) : asNumber))
    return refuse(key, value, `${rule}; nearest valid: ${inside}`)
  }
}

export const integer = (min: number, max: number): Check<number> => numeric(min, max, true)

export const fraction = (min: number, max: number): Check<number> => numeric(min, max, false)

export function listOf<T>(check: Check<T>): Check<T[]> {
  return (value, key) =>
    Array.isArray(value)
      ? value.map((item, i) => check(item, `${key}[${i}]`))
      : refuse(key, value, 'must be a list in [brackets]')
}

export const textTable: Check<Record<string, string>> = (value, key) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse(key, value, 'must be a table in {braces}')
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, filledText(item, `${key}.${name}`)]),
  )
}

export const ipv4Block: Check<string> = (value, key) =>
  typeof value === 'string' && value.includes('/') && parseCidr(value)
    ? value
    : refuse(key, value, 'must be an IPv4 block whose host bits are all zero, such as 198.18.0.0/18')

export const ipBlock: Check<string> = (value, key) => {
  return typeof value === 'string' && isAddressBlock(value)
    ? value
    : refuse(key, value, 'must be an address or a block, such as 10.0.0.0/8 or fd00::/8')
}

/**
 * Returns decimal text. A very small price must be in quotes, because `String` writes such a number with an
 * exponent.
 */
export const price: Check<string> = (value, key) => {
  const decimal = typeof value === 'number' ? String(value) : value
  return typeof decimal === 'string' && /^[0-9]{1,9}(\.[0-9]{1,12})?$/.test(decimal)
    ? decimal
    : refuse(key, value, 'must be a price in US dollars, such as 0.90')
}

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : S
type Fields = Record<string, Field<unknown>>
type Values<F extends Fields> = { [K in keyof F]: F[K] extends Field<infer T> ? T : never }
export type Section<F extends Fields> = {
  [K in keyof F as Camel<K & string>]: F[K] extends Field<infer T> ? T : never
}

/**
 * Reads a table and keeps the file's key names. Reports unknown keys before missing ones, because an unknown
 * key is often a misspelling of a missing one.
 */
export function readTable<F extends Fields>(fields: F, value: unknown, path: string): Values<F> {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date) {
    return refuse(path, value, `must be a table, [${path}]`)
  }
  const known = Object.keys(fields)
  const at = (key: string) => (path === '' ? key : `${path}.${key}`)
  for (const [key, given] of Object.entries(value)) {
    if (known.includes(key)) continue
    const near = nearest(key, known)
    refuse(at(key), given, `unknown key${didYouMean(near && at(near)) || `; supported: ${known.join(', ')}`}`)
  }
  const given = value as Record<string, unknown>
  return Object.fromEntries(
    Object.entries(fields).map(([key, { check, fallback }]) => {
      if (given[key] !== undefined) return [key, check(given[key], at(key))]
      if (fallback === undefined) throw new ConfigError(`${at(key)} is missing and has no default`)
      return [key, fallback]
    }),
  ) as Values<F>
}

function camel(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Reads a table and converts its keys to camel case. */
export function readSection<F extends Fields>(fields: F, value: unknown, path: string): Section<F> {
  const entries = Object.entries(readTable(fields, value, path)).map(([key, read]) => [camel(key), read])
  return Object.fromEntries(entries) as Section<F>
}

export function sectionOf<F extends Fields>(fields: F): Check<Section<F>> {
  return (value, key) => readSection(fields, value, key)
}

/** Reads an array of tables ([[path]]). Error messages identify a table by its index, such as `path[0]`. */
export function readTables<T>(
  value: unknown,
  path: string,
  read: (table: unknown, key: string, index: number) => T,
): T[] {
  if (!Array.isArray(value)) return refuse(path, value, `must be an array of tables, [[${path}]]`)
  return value.map((table, index) => read(table, `${path}[${index}]`, index))
}
