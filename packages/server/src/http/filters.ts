import { Failure } from '../domain/failure.ts'
import { isUuid } from '../domain/ids.ts'

/** A comma-separated filter; null when it is not given. */
export const commaList = (text: string | undefined): string[] | null =>
  text === undefined ? null : text.split(',').filter((part) => part !== '')

/** A comma-separated filter of ids. */
export function idList(field: string, text: string | undefined): string[] | null {
  const ids = commaList(text)
  if (ids && !ids.every(isUuid))
    throw new Failure('invalid_argument', `${field} must be UUIDs, comma-separated.`, {
      details: [{ field, message: 'must be UUIDs, comma-separated' }],
    })
  return ids
}
