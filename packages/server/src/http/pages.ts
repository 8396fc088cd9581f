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
/** The store may stop after the first record that makes the page larger than `bytes`. */
type ReadRecords<Row> = (before: string | null, limit: number, bytes: number) => Promise<Row[]>

type ListContext = Pick<Context, 'routeId' | 'params' | 'pageBytes'> & {
  query: { limit?: number; page_token?: string; sort?: Sort } | undefined
}

/**
 * Reads one page of a list. `read` gets the cursor of the previous page (null for the first page) and the
 * number of rows to read. `cursorOf` returns the cursor after a row.
 */
export const page = <Row, Item>(
  context: ListContext,
  read: Read<Row>,
  view: (row: Row) => Item,
  cursorOf: (row: Row) => string,
): Promise<JsonText<Page<Item>>> =>
  readPage(
    context,
    (before, limit) => read(before, limit),
    (row) => JSON.stringify(view(row)),
    cursorOf,
  )

/** Reads one page of a list in the order of ids, newest first. */
export const pageById = <Row extends { id: string }, Item>(
  context: ListContext,
  read: Read<Row>,
  view: (row: Row) => Item,
): Promise<JsonText<Page<Item>>> => page(context, read, view, ({ id }) => id)

/** Like `pageById`, for records that the store returns as JSON. */
export const pageOfRecords = <Item>(
  context: ListContext,
  read: ReadRecords<{ id: string; record: string }>,
): Promise<JsonText<Page<Item>>> =>
  readPage(
    context,
    read,
    ({ record }) => record,
    ({ id }) => id,
  )

/** Like `pageOfRecords`, in the order that the caller chose. */
export const pageOfSorted = <Item>(
  context: ListContext,
  read: ReadRecords<SortedRow & { record: string }>,
): Promise<JsonText<Page<Item>>> => readPage(context, read, ({ record }) => record, cursorOf)

const cursorOf = ({ id, sort_key }: SortedRow) => `${id}:${sort_key}`

/** Reads the cursor of a sorted list. */
export function afterCursor(
  sort: Sort = '-created_at',
  cursor: string | null,
): Pick<SortedPage, 'sort' | 'afterId' | 'afterKey'> {
  if (cursor === null) return { sort, afterId: null, afterKey: null }
  const [afterId, afterKey] = [cursor.slice(0, 36), cursor.slice(37)]
  const isKey = !sort.endsWith('usd_per_hour') || /^(-?\d+(\.\d+)?|Infinity)$/.test(afterKey)
  if (!isUuid(afterId) || !isKey) throw wrongPageToken()
  return { sort, afterId, afterKey }
}

async function readPage<Row, Item>(
  context: ListContext,
  read: ReadRecords<Row>,
  textOf: (row: Row) => string,
  cursorOf: (row: Row) => string,
): Promise<JsonText<Page<Item>>> {
  const { routeId, params, query, pageBytes } = context
  const list = [routeId, ...Object.values(params), ...(query?.sort ? [query.sort] : [])].join(' ')
  const limit = query?.limit ?? defaultLimit
  // One row more than requested shows whether there is a next page.
  const rows = await read(readPageToken(list, query?.page_token), limit + 1, pageBytes)
  const { items, isCut } = itemsOf(rows, textOf, limit, pageBytes)
  const next = isCut ? pageToken(list, cursorOf(rows[items.length - 1]!)) : ''
  return new JsonText(`{"items":[${items.join(',')}],"next_page_token":${JSON.stringify(next)}}`)
}

/** Returns the items of a page, at least one if there are rows. `isCut` is true if there may be more. */
function itemsOf<Row>(rows: Row[], textOf: (row: Row) => string, limit: number, maxBytes: number) {
  const items: string[] = []
  let bytes = 0
  for (const row of rows) {
    if (items.length === limit) return { items, isCut: true }
    const text = textOf(row)
    bytes += Buffer.byteLength(text)
    if (bytes > maxBytes && items.length > 0) return { items, isCut: true }
    items.push(text)
  }
  return { items, isCut: bytes > maxBytes }
}

/** Page tokens contain a digest of the list, so that a modified token, or a token of another list, is rejected. */
function readPageToken(list: string, token: string | undefined): string | null {
  if (token === undefined || token === '') return null
  const [, cursor] = Buffer.from(token, 'base64url').toString('utf8').split(' ')
  // The token is compared as a whole, because decoding skips characters that are not base64.
  if (cursor === undefined || token !== pageToken(list, cursor)) throw wrongPageToken()
  return cursor
}

const wrongPageToken = () =>
  invalidParameter(
    'page_token',
    'is not a page token of this list; use the next_page_token of the previous response',
  )

const pageToken = (list: string, cursor: string) =>
  Buffer.from(`${digestOf(list, cursor)} ${cursor}`).toString('base64url')

const digestOf = (list: string, cursor: string) =>
  createHash('sha256').update(`${list}\n${cursor}`).digest('base64url').slice(0, 12)
