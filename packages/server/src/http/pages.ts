import { createHash } from 'node:crypto'
import type { Sort } from '@slipway/contract'
import { isUuid } from '../domain/ids.ts'
import { JsonText } from '../postgres/json.ts'
import type { SortedPage, SortedRow } from '../postgres/sorted.ts'
import type { Context } from './context.ts'
import { invalidParameter } from './validation.ts'

const defaultLimit = 100

interface Page<Item> {
  items: Item[]
  next_page_token: string
}

type Read<Row> = (before: string | null, limit: number) => Promise<Row[]>

type ListContext = Pick<Context, 'routeId' | 'params'> & {
  query: { limit?: number; page_token?: string; sort?: Sort } | undefined
}

/**
 * Reads one page of a list. `read` gets the cursor of the previous page, null for the first, and the number of rows to
 * read. `cursorOf` returns the cursor after a row.
 */
export async function page<Row, Item>(
  context: ListContext,
  read: Read<Row>,
  view: (row: Row) => Item,
  cursorOf: (row: Row) => string,
): Promise<Page<Item>> {
  const { rows, nextPageToken } = await readPage(context, read, cursorOf)
  return { items: rows.map(view), next_page_token: nextPageToken }
}

/** Reads one page of a list in the order of ids, newest first. */
export const pageById = <Row extends { id: string }, Item>(
  context: ListContext,
  read: Read<Row>,
  view: (row: Row) => Item,
): Promise<Page<Item>> => page(context, read, view, ({ id }) => id)

/** Like `pageById`, for records that the store returns as JSON. */
export const pageOfRecords = <Item>(context: ListContext, read: Read<{ id: string; record: string }>) =>
  recordsOf<{ id: string; record: string }, Item>(context, read, ({ id }) => id)

/** Like `pageOfRecords`, in the order that the caller chose. */
export const pageOfSorted = <Item>(context: ListContext, read: Read<SortedRow & { record: string }>) =>
  recordsOf<SortedRow & { record: string }, Item>(context, read, cursorOf)

const cursorOf = ({ id, sort_key }: SortedRow) => `${id}:${sort_key}`

/** Reads the cursor of a sorted list. */
export function afterCursor(sort: Sort = '-created_at', cursor: string | null): Omit<SortedPage, 'limit'> {
  if (cursor === null) return { sort, afterId: null, afterKey: null }
  const [afterId, afterKey] = [cursor.slice(0, 36), cursor.slice(37)]
  const isKey = !sort.endsWith('usd_per_hour') || /^(-?\d+(\.\d+)?|Infinity)$/.test(afterKey)
  if (!isUuid(afterId) || !isKey) throw wrongPageToken()
  return { sort, afterId, afterKey }
}

async function recordsOf<Row extends { record: string }, Item>(
  context: ListContext,
  read: Read<Row>,
  cursor: (row: Row) => string,
): Promise<JsonText<Page<Item>>> {
  const { rows, nextPageToken } = await readPage(context, read, cursor)
  const items = rows.map(({ record }) => record).join(',')
  return new JsonText(`{"items":[${items}],"next_page_token":${JSON.stringify(nextPageToken)}}`)
}

async function readPage<Row>(context: ListContext, read: Read<Row>, cursorOf: (row: Row) => string) {
  const sort = context.query?.sort
  const list = [context.routeId, ...Object.values(context.params), ...(sort ? [sort] : [])].join(' ')
  const limit = context.query?.limit ?? defaultLimit
  // One row more than requested shows whether there is a next page.
  const rows = await read(readPageToken(list, context.query?.page_token), limit + 1)
  if (rows.length <= limit) return { rows, nextPageToken: '' }
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { rows: shown, nextPageToken: last === undefined ? '' : pageToken(list, cursorOf(last)) }
}

/** Page tokens contain a digest of the list, so that a changed token and one of another list are refused. */
function readPageToken(list: string, token: string | undefined): string | null {
  if (token === undefined || token === '') return null
  const [, cursor] = Buffer.from(token, 'base64url').toString('utf8').split(' ')
  // Compared as a whole, because decoding skips characters that are not base64.
  if (cursor === undefined || token !== pageToken(list, cursor)) throw wrongPageToken()
  return cursor
}

const wrongPageToken = () => invalidParameter('page_token', 'is not a token of this list')

const pageToken = (list: string, cursor: string) =>
  Buffer.from(`${digestOf(list, cursor)} ${cursor}`).toString('base64url')

const digestOf = (list: string, cursor: string) =>
  createHash('sha256').update(`${list}\n${cursor}`).digest('base64url').slice(0, 12)
