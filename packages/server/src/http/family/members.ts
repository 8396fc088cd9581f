import { Failure } from '../../domain/failure.ts'

/** A JSON object that has not been checked yet. */
export type Members = Record<string, unknown>

/** Returns a nested member, or undefined if the path does not exist. */
export function memberOf(value: unknown, ...path: (string | number)[]): unknown {
  let at = value
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Record<string | number, unknown>)[name]
  }
  return at
}

/** Leaves out null and empty strings, which clients send for members that are not set. */
export const withoutEmpty = (members: Members): Members =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  )

export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Throws 400 if the request uses a feature that this service does not have. */
export function refuseUnsupported(members: Members, unsupported: Record<string, string>): void {
  for (const [name, reason] of Object.entries(unsupported)) {
    const value = members[name]
    if (Array.isArray(value) ? value.length > 0 : Boolean(value))
      throw new Failure('invalid_argument', `${name} is not supported: ${reason}`)
  }
}

export const noInfiniBand = 'this service has no InfiniBand.'
export const noNvlink = 'this service has no NVLink domains.'
export const noNat = 'this service has no NAT gateways.'
