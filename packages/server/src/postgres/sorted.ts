import type { Sort } from '@slipway/contract'
import { zeroUuid } from '../domain/ids.ts'
import type { Queryable } from './database.ts'
import { filteredStatement, untilPageIsFull } from './statement.ts'

/**
 * A page of a sorted list. It begins after the given row, or at the start of the list if `afterId` and
 * `afterKey` are null.
 */
export interface SortedPage {
  sort: Sort
  afterId: string | null
  /** The sort key of that row, in addition to its id. */
  afterKey: string | null
  limit: number
  bytes: number
}

export interface SortedRow {
  id: string
  sort_key: string
}

/** SQL expressions of a list's sort keys. */
interface SortColumns {
  id: string
  name: string
  usdPerHour: string
}

interface Order {
  key: string
  isAfter: string
  orderBy: string
}

const firstId = `'${zeroUuid}'`
const lastId = `'ffffffff-ffff-ffff-ffff-ffffffffffff'`
/** Sorts after every name of at most 63 letters, in any collation. */
const lastName = `repeat('z', 64)`

/**
 * Each bound is one comparison that can use an index. Without an `after` value, the bound is before the first
 * row.
 */
const ordersOf = ({ id, name, usdPerHour }: SortColumns): Record<Sort, Order> => {
  // Rows without a price come last in both directions.
  const [ascendingPrice, descendingPrice] = [
    `coalesce(${usdPerHour}, 'Infinity')`,
    `coalesce(${usdPerHour}, -1)`,
  ]
  return {
    created_at: { key: `''`, isAfter: `${id} > coalesce(:afterId::uuid, ${firstId})`, orderBy: id },
    '-created_at': {
      key: `''`,
      isAfter: `${id} < coalesce(:afterId::uuid, ${lastId})`,
      orderBy: `${id} DESC`,
    },
    name: { key: name, isAfter: `${name} > coalesce(:afterKey::text, '')`, orderBy: name },
    '-name': {
      key: name,
      isAfter: `${name} < coalesce(:afterKey::text, ${lastName})`,
      orderBy: `${name} DESC`,
    },
    usd_per_hour: {
      key: `${ascendingPrice}::text`,
      isAfter: `(${ascendingPrice}, ${id}) > (coalesce(:afterKey::numeric, -1), coalesce(:afterId::uuid, ${firstId}))`,
      orderBy: `${ascendingPrice}, ${id}`,
    },
    '-usd_per_hour': {
      key: `${descendingPrice}::text`,
      isAfter: `(${descendingPrice}, ${id}) < (coalesce(:afterKey::numeric, 'Infinity'), coalesce(:afterId::uuid, ${lastId}))`,
      orderBy: `${descendingPrice} DESC, ${id} DESC`,
    },
  }
}

/** A filtered list in every sort order, with one statement for each order. Names are unique in a list. */
export function sortedStatement<Row extends SortedRow, Params extends SortedPage>(
  name: string,
  columns: SortColumns,
  text: (order: Order & { given: string }) => string,
  filters: Parameters<typeof filteredStatement<Row, Params>>[2],
): { all(db: Queryable, params: Params): Promise<Row[]> } {
  const bySort = Object.fromEntries(
    Object.entries(ordersOf(columns)).map(([sort, order]) => [
      sort,
      filteredStatement<Row, Params>(
        `${name}_by_${sort.replace('-', 'falling_')}`,
        (given) => untilPageIsFull('id, sort_key', text({ ...order, given })),
        filters,
      ),
    ]),
  ) as Record<Sort, Pick<ReturnType<typeof filteredStatement<Row, Params>>, 'all'>>
  return { all: (db, params) => bySort[params.sort].all(db, params) }
}

/**
 * The service's time, as a subquery: `slipway_now()` reads a table, and PostgreSQL evaluates the subquery once per
 * statement instead of once per row.
 */
export const now = '(SELECT slipway_now())'

/** The current price of one product, as SQL. */
export const priceNow = (product: string) =>
  `(SELECT p.usd FROM prices p WHERE p.product_name = ${product} AND p.valid_from <= ${now}
    ORDER BY p.valid_from DESC LIMIT 1)`
