import { type Queryable, statement, type Tx } from '../database.ts'

export interface PriceRow {
  product_name: string
  unit: 'vm_hour' | 'gb_hour'
  /** Exact decimal text. */
  usd: string
}

const inForce = `SELECT DISTINCT ON (product_name) product_name, unit, usd FROM prices
  WHERE valid_from <= slipway_now() ORDER BY product_name, valid_from DESC`

const list = statement<PriceRow>(
  'price_list',
  `SELECT product_name, unit, usd::text FROM (${inForce}) p ORDER BY product_name`,
)

const find = statement<PriceRow, [string]>(
  'price_find',
  `SELECT product_name, unit, usd::text FROM prices WHERE product_name = $1 AND valid_from <= slipway_now()
   ORDER BY valid_from DESC LIMIT 1`,
)

// A price that is in force already is not written again: the history shows changes only.
const put = statement<never, [string[], string[], string[], boolean]>(
  'price_put',
  `WITH in_force AS (${inForce})
   INSERT INTO prices (product_name, valid_from, unit, usd)
   SELECT w.product_name, slipway_now(), w.unit, trim_scale(w.usd)
   FROM unnest($1::text[], $2::text[], $3::numeric[]) AS w (product_name, unit, usd)
   LEFT JOIN in_force f USING (product_name)
   WHERE f.usd IS NULL OR (NOT $4 AND f.usd <> w.usd)
   ON CONFLICT (product_name, valid_from) DO UPDATE SET usd = excluded.usd, unit = excluded.unit`,
)

export const listPrices = (db: Queryable): Promise<PriceRow[]> => list.all(db)

export const findPrice = (db: Queryable, productName: string): Promise<PriceRow | undefined> =>
  find.one(db, productName)

/** Valid from now; products that are not named keep their price. */
export async function setPrices(tx: Tx, prices: PriceRow[], options = { onlyUnset: false }): Promise<void> {
  await put.run(
    tx,
    prices.map((price) => price.product_name),
    prices.map((price) => price.unit),
    prices.map((price) => price.usd),
    options.onlyUnset,
  )
}
