import { type LabelSelector, parseLabelSelector } from '@slipway/contract'
import { isUuid } from '../domain/ids.ts'
import { oneOf } from '../domain/nearest.ts'
import type { Queryable } from '../postgres/database.ts'
import { listLocations } from '../store/fleet/locations.ts'
import { invalid } from './validation.ts'

/** A comma-separated filter; null when it names nothing, which is the same as not given. */
export function commaList(text: string | undefined): string[] | null {
  const parts = (text ?? '').split(',').filter((part) => part !== '')
  return parts.length === 0 ? null : parts
}

/** A filter by labels, of a form that has been checked. */
export const labelFilter = (query: { label_selector?: string }): LabelSelector | null =>
  query.label_selector === undefined ? null : parseLabelSelector(query.label_selector)

/** A comma-separated filter of ids. */
export function idList(field: string, text: string | undefined): string[] | null {
  const ids = commaList(text)
  if (ids && !ids.every(isUuid)) throw invalid([{ field, message: 'must be UUIDs, comma-separated' }])
  return ids
}

/** A comma-separated filter of values from a closed set. */
export function choiceList(
  field: string,
  text: string | undefined,
  choices: readonly string[],
): string[] | null {
  const given = commaList(text)
  const unknown = given?.find((value) => !choices.includes(value))
  if (unknown !== undefined) throw invalid([{ field, message: oneOf(unknown, choices) }])
  return given
}

/** A comma-separated filter of locations; which there are is looked up only if it is given. */
export async function locationList(db: Queryable, text: string | undefined): Promise<string[] | null> {
  return commaList(text) && choiceList('locations', text, await locationNames(db))
}

/** A filter of one location. */
export async function locationFilter(db: Queryable, name: string | undefined): Promise<string | null> {
  if (name === undefined) return null
  const known = await locationNames(db)
  if (!known.includes(name)) throw invalid([{ field: 'location', message: oneOf(name, known) }])
  return name
}

const locationNames = async (db: Queryable) => (await listLocations(db)).map(({ name }) => name)
