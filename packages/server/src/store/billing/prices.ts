import type { Tx } from '../../postgres/database.ts'
import { holdLock } from '../../postgres/locks.ts'
import { statement } from '../../postgres/statement.ts'

export interface PriceRow {
  product_name: string
  unit: 'vm_hour' | 'gb_hour'
  /** Exact decimal text. */
  usd: string
}

const inForce = `SELECT DISTINCT ON (product_name) product_name, unit, usd FROM prices
  WHERE valid_from <= slipway_now() ORDER BY product_name, valid_from DESC`

export const listPrices = statement<PriceRow>(
  'price_list',
  `SELECT product_name, unit, usd::text FROM (${inForce}) p ORDER BY product_name`,
).all

export const findPrice = statement<PriceRow, { productName: string }>(
  'price_find',
  `SELECT product_name, unit, usd::text FROM prices WHERE product_name = :productName AND valid_from <= slipway_now()
   ORDER BY valid_from DESC LIMIT 1`,
).oneBy('productName')

// A price that is in force already is not written again: the history shows changes only.
const put = statement<
  never,
  { productNames: string[]; units: string[]; prices: string[]; onlyUnset: boolean }
>(
  'price_put',
  `WITH in_force AS (${inForce})
   INSERT INTO prices (product_name, valid_from, unit, usd)
   SELECT w.product_name, slipway_now(), w.unit, trim_scale(w.usd)
   FROM unnest(:productNames::text[], :units::text[], :prices::numeric[]) AS w (product_name, unit, usd)
   LEFT JOIN in_force f USING (product_name)
   WHERE f.usd IS NULL OR (NOT :onlyUnset AND f.usd <> w.usd)
   ON CONFLICT (product_name, valid_from) DO UPDATE SET usd = excluded.usd, unit = excluded.unit`,
)

/** The prices are valid from now; products that are not named keep theirs. */
export async function setPrices(tx: Tx, prices: PriceRow[], options = { onlyUnset: false }): Promise<void> {
  // Whoever opens or closes a meter does so before the moment from which the prices hold, or sees them.
  await holdLock(tx, 'prices')
  await put.run(tx, {
    productNames: prices.map((price) => price.product_name),
    units: prices.map((price) => price.unit),
    prices: prices.map((price) => price.usd),
    onlyUnset: options.onlyUnset,
  })
}
