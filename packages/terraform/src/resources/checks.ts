import type { Problem } from '../engine/diagnostics.ts'
import { unknown, type Values } from '../values/types.ts'

/**
 * Checks that a configuration has exactly one of these attributes. An unknown value may turn out to be null,
 * so it counts as set or not set, whichever is valid.
 */
export function exactlyOneOf(noun: string, names: string[]) {
  return (config: Values): Problem[] => {
    const given = names.filter((name) => (config[name] ?? null) !== null)
    const certain = given.filter((name) => config[name] !== unknown)
    if (given.length > 0 && certain.length <= 1) return []
    const detail = `Set exactly one of ${names.slice(0, -1).join(', ')} and ${names.at(-1)}.`
    return [{ summary: `Invalid ${noun}`, detail, attribute: names[0]! }]
  }
}
