import { createHash } from 'node:crypto'
import type { Sort } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import { isUuid } from '../domain/ids.ts'
import { JsonText } from '../postgres/json.ts'
import type { SortedPage, SortedRow } from '../postgres/sorted.ts'
import type { Context } from './context.ts'

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
 * One page of a list. `read` gets the cursor of the page before (null for the first page) and how many rows to read;
 * `cursorOf` says where the next page begins after a row.
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

/** A list in the order of ids, newest first, as most are. */
export const pageById = <Row extends { id: string }, Item>(
  context: ListContext,
  read: Read<Row>,
  view: (row: Row) => Item,
): Promise<Page<Item>> => page(context, read, view, ({ id }) => id)

/** The same of records that the store has written as JSON. */
export const pageOfRecords = <Item>(context: ListContext, read: Read<{ id: string; record: string }>) =>
  recordsOf<{ id: string; record: string }, Item>(context, read, ({ id }) => id)

/** The same in an order that the caller chose. */
export const pageOfSorted = <Item>(context: ListContext, read: Read<SortedRow & { record: string }>) =>
  recordsOf<SortedRow & { record: string }, Item>(context, read, cursorOf)

const cursorOf = ({ id, sort_key }: SortedRow) => `${id}:${sort_key}`

/** Where a sorted list goes on after the row of a cursor. */
export function afterCursor(sort: Sort = '-created_at', cursor: string | null): Omit<SortedPage, 'limit'> {
  if (cursor === null) return { sort, afterId: null, afterKey: null }
  const [afterId, afterKey] = [cursor.slice(0, 36), cursor.slice(37)]
  const isKey = sort.endsWith('usd_per_hour') ? /^(-?\d+(\.\d+)?|Infinity)$/.test(afterKey) : true
  if (!isUuid(afterId) || !isKey) throw notOfThisList()
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
  // One more than asked for tells whether there is a next page.
  const rows = await read(readPageToken(list, context.query?.page_token), limit + 1)
  if (rows.length <= limit) return { rows, nextPageToken: '' }
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { rows: shown, nextPageToken: last === undefined ? '' : pageToken(list, cursorOf(last)) }
}

/**
 * Page tokens are opaque and belong to one list: they carry a digest of the list's name, so that a garbled one, or one
 * of another list, is refused.
 */
function readPageToken(list: string, token: string | undefined): string | null {
  if (token === undefined || token === '') return null
  const [, cursor] = Buffer.from(token, 'base64url').toString('utf8').split(' ')
  // Made again and compared whole: decoding overlooks what is not base64.
  if (cursor === undefined || token !== pageToken(list, cursor)) throw notOfThisList()
  return cursor
}

const notOfThisList = () =>
  new Failure('invalid_argument', 'page_token is not one of this list.', {
    details: [{ field: 'page_token', message: 'is not one of this list' }],
  })

const pageToken = (list: string, cursor: string) =>
  Buffer.from(`${digestOf(list, cursor)} ${cursor}`).toString('base64url')

const digestOf = (list: string, cursor: string) =>
  createHash('sha256').update(`${list}\n${cursor}`).digest('base64url').slice(0, 12)
