import { createHash } from 'node:crypto'
import { Failure } from '../domain/failure.ts'

/**
 * Page tokens are opaque and belong to one list: they carry a digest of the list's name, so that a garbled one, or one
 * of another list, is refused.
 */
export function readPageToken(list: string, token: string | undefined): string | null {
  if (token === undefined || token === '') return null
  const [, cursor] = Buffer.from(token, 'base64url').toString('utf8').split(' ')
  // Made again and compared whole: decoding overlooks what is not base64.
  if (cursor === undefined || token !== pageToken(list, cursor))
    throw new Failure('invalid_argument', 'page_token is not one of this list.', {
      details: [{ field: 'page_token', message: 'is not one of this list' }],
    })
  return cursor
}

/** Makes a page of up to `limit` from rows that were asked for with one more. */
export function toPage<Row, Item>(
  list: string,
  rows: Row[],
  limit: number,
  cursorOf: (row: Row) => string,
  view: (row: Row) => Item,
): { items: Item[]; next_page_token: string } {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const hasMore = rows.length > limit && last !== undefined
  return { items: page.map(view), next_page_token: hasMore ? pageToken(list, cursorOf(last)) : '' }
}

const pageToken = (list: string, cursor: string) =>
  Buffer.from(`${digestOf(list, cursor)} ${cursor}`).toString('base64url')

const digestOf = (list: string, cursor: string) =>
  createHash('sha256').update(`${list}\n${cursor}`).digest('base64url').slice(0, 12)

export const pageLimit = (query: { limit?: number } | undefined): number => query?.limit ?? 100
