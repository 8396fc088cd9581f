import { type LabelSelector, parseLabelSelector } from '@slipway/contract'
import { isUuid } from '../domain/ids.ts'
import { oneOf } from '../domain/nearest.ts'
import type { Queryable } from '../postgres/database.ts'
import { listLocations } from '../store/fleet/locations.ts'
import { invalidParameter } from './validation.ts'

/** Splits a comma-separated filter; null if it is not given or empty. */
export function commaList(text: string | undefined): string[] | null {
  const parts = (text ?? '').split(',').filter((part) => part !== '')
  return parts.length === 0 ? null : parts
}

export const labelFilter = (query: { label_selector?: string }): LabelSelector | null =>
  query.label_selector === undefined ? null : parseLabelSelector(query.label_selector)

export function idList(field: string, text: string | undefined): string[] | null {
  const ids = commaList(text)
  if (ids && !ids.every(isUuid)) throw invalidParameter(field, 'must be a comma-separated list of UUIDs')
  return ids
}

export function choiceList(
  field: string,
  text: string | undefined,
  choices: readonly string[],
): string[] | null {
  const given = commaList(text)
  const unknown = given?.find((value) => !choices.includes(value))
  if (unknown !== undefined) throw invalidParameter(field, oneOf(unknown, choices))
  return given
}

export const locationList = async (db: Queryable, text: string | undefined): Promise<string[] | null> =>
  commaList(text) && choiceList('locations', text, await locationNames(db))

export async function locationFilter(db: Queryable, name: string | undefined): Promise<string | null> {
  if (name === undefined) return null
  const known = await locationNames(db)
  if (!known.includes(name)) throw invalidParameter('location', oneOf(name, known))
  return name
}

const locationNames = async (db: Queryable) => (await listLocations(db)).map(({ name }) => name)
