import type { Sort } from '@slipway/contract'
import type { Queryable } from './database.ts'
import { filteredStatement } from './statement.ts'

/** Where a page begins: after a row, in the order that was asked for. Nulls begin the list. */
export interface SortedPage {
  sort: Sort
  afterId: string | null
  /** What the row is sorted by, beside its id. */
  afterKey: string | null
  limit: number
}

export interface SortedRow {
  id: string
  sort_key: string
}

/** What a list is sorted by, as SQL. */
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

const firstId = `'00000000-0000-0000-0000-000000000000'`
const lastId = `'ffffffff-ffff-ffff-ffff-ffffffffffff'`
/** No name of at most 63 letters comes after it, whatever the collation. */
const lastName = `repeat('z', 64)`

/** The bounds are one comparison each, which an index finds; without one, the list begins before its first row. */
const ordersOf = ({ id, name, usdPerHour }: SortColumns): Record<Sort, Order> => {
  // What has no price comes last, either way.
  const [dearest, cheapest] = [`coalesce(${usdPerHour}, 'Infinity')`, `coalesce(${usdPerHour}, -1)`]
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
      key: `${dearest}::text`,
      isAfter: `(${dearest}, ${id}) > (coalesce(:afterKey::numeric, -1), coalesce(:afterId::uuid, ${firstId}))`,
      orderBy: `${dearest}, ${id}`,
    },
    '-usd_per_hour': {
      key: `${cheapest}::text`,
      isAfter: `(${cheapest}, ${id}) < (coalesce(:afterKey::numeric, 'Infinity'), coalesce(:afterId::uuid, ${lastId}))`,
      orderBy: `${cheapest} DESC, ${id} DESC`,
    },
  }
}

/** A filtered list that can be had in every order, each as a statement of its own. Names are unique in a list. */
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
        (given) => text({ ...order, given }),
        filters,
      ),
    ]),
  ) as Record<Sort, Pick<ReturnType<typeof filteredStatement<Row, Params>>, 'all'>>
  return { all: (db, params) => bySort[params.sort].all(db, params) }
}

/** The time, asked for once in a statement and not for each row: asking reads a table. */
export const now = '(SELECT slipway_now())'

/** The price in force of one product, as SQL. */
export const priceNow = (product: string) =>
  `(SELECT p.usd FROM prices p WHERE p.product_name = ${product} AND p.valid_from <= ${now}
    ORDER BY p.valid_from DESC LIMIT 1)`
