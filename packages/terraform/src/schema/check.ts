import { cidrPattern } from '@slipway/contract/cidr'
import { isValues, unknown, type Value } from '../values/types.ts'
import { type ContractSchema, membersOf, withoutNull } from './from-contract.ts'

/**
 * Checks a configured value against the contract's schema, so that `terraform plan` finds mistakes. Returns a
 * description of the problem, or undefined. Unknown values are accepted.
 */
export function problemOf(value: Value, given: ContractSchema): string | undefined {
  if (value === null || value === unknown) return undefined
  const schema = withoutNull(given)
  if (Array.isArray(value))
    return sizeProblem(value.length, schema, 'items') ?? firstProblem(value, schema.items)
  if (isValues(value)) return objectProblem(value, schema)
  if (schema.enum && !schema.enum.includes(value))
    return `${quote(value)} is not supported. Supported values: ${schema.enum.join(', ')}.`
  if (schema.const !== undefined && schema.const !== value)
    return `${quote(value)} is not supported. Supported value: ${schema.const}.`
  if (typeof value === 'number') return numberProblem(value, schema)
  if (typeof value === 'string') return stringProblem(value, schema)
  return undefined
}

function firstProblem(values: Value[], schema: ContractSchema | undefined): string | undefined {
  if (!schema) return undefined
  for (const value of values) {
    const problem = problemOf(value, schema)
    if (problem) return problem
  }
  return undefined
}

function objectProblem(value: { [name: string]: Value }, schema: ContractSchema): string | undefined {
  const members = membersOf(schema)
  const entries = Object.entries(value)
  if (Object.keys(members).length === 0) {
    const limit = schema.maxProperties
    if (limit !== undefined && entries.length > limit) return `There are more than ${limit} entries.`
    return (
      firstProblem(Object.keys(value), schema.propertyNames) ??
      firstProblem(Object.values(value), schema.additionalProperties as ContractSchema)
    )
  }
  for (const [name, member] of entries) {
    const problem = members[name] && problemOf(member, members[name])
    if (problem) return `${name}: ${problem}`
  }
  return undefined
}

function numberProblem(value: number, { type, minimum, maximum }: ContractSchema): string | undefined {
  if (type === 'integer' && !Number.isInteger(value)) return `${value} is not a whole number.`
  if (minimum !== undefined && value < minimum) return `${value} is too small. The minimum is ${minimum}.`
  if (maximum !== undefined && value > maximum) return `${value} is too large. The maximum is ${maximum}.`
  return undefined
}

function stringProblem(value: string, schema: ContractSchema): string | undefined {
  const { pattern, format, description } = schema
  const size = sizeProblem(value.length, schema, 'characters')
  if (size) return size
  if (format === 'date-time' && Number.isNaN(Date.parse(value)))
    return `${quote(value)} is not a time. Expected ISO 8601 with a zone, for example 2026-12-31T00:00:00Z.`
  if (!pattern || new RegExp(pattern, 'u').test(value)) return undefined
  return `${quote(value)} has an invalid format. Expected: ${expected(schema) ?? description ?? 'another format'}`
}

function expected({ format, pattern }: ContractSchema): string | undefined {
  if (format === 'uuid') return 'a UUID.'
  if (format === 'port-range') return 'a port or a range of ports, for example 22 or 3000-8080.'
  if (format === 'event-types') return 'an event type, for example vm.running or operation.*.'
  return pattern === cidrPattern ? 'a private IPv4 block, for example 10.20.0.0/16.' : undefined
}

function sizeProblem(size: number, schema: ContractSchema, unit: string): string | undefined {
  const minimum = unit === 'items' ? schema.minItems : schema.minLength
  const maximum = unit === 'items' ? schema.maxItems : schema.maxLength
  if (minimum !== undefined && size < minimum)
    return `The value has ${size} ${unit}. The minimum is ${minimum}.`
  if (maximum !== undefined && size > maximum)
    return `The value has ${size} ${unit}. The maximum is ${maximum}.`
  return undefined
}

const quote = (value: Value) => JSON.stringify(value)
