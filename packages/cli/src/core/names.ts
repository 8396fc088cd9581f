import { nearWords } from '@slipway/contract/near-words'
import { NotFound, UsageError } from '../errors/cli-error.ts'

export interface Named {
  id: string
  name: string
  /** Distinguishes resources with the same name. */
  hint?: string
}

export const pluralOf = (title: string): string => (title.endsWith('s') ? `${title}es` : `${title}s`)

/** Returns the title with `a` or `an`. */
export const withArticle = (title: string): string => `${/^[aeiou]/.test(title) ? 'an' : 'a'} ${title}`

/** Finds the resource with this name or id. Throws if the name is unknown or not unique. */
export function resolveAmong<T>(
  title: string,
  wanted: string,
  candidates: T[],
  named: (candidate: T) => Named,
): T & Named {
  const all = candidates.map((candidate) => ({ ...candidate, ...named(candidate) }))
  const byId = all.find((candidate) => candidate.id === wanted)
  if (byId) return byId
  // Sort by hint, because the error message shows the hints.
  const matches = all
    .filter((candidate) => candidate.name === wanted)
    .sort((a, b) => (a.hint ?? '').localeCompare(b.hint ?? ''))
  const [only] = matches
  if (only && matches.length === 1) return only
  if (matches.length > 1) {
    throw new UsageError(
      `${matches.length} ${pluralOf(title)} are named ${wanted}. Use the id.`,
      matches.map(({ id, hint }) => (hint ? `${id}  ${hint}` : id)),
    )
  }
  const near = nearWords(
    wanted,
    all.map(({ name }) => name),
  )
  throw new NotFound(
    `There is no ${title} called ${wanted}.`,
    near.length > 0 ? [`Did you mean ${near.join(' or ')}?`] : [],
  )
}
