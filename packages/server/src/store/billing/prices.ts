import type { Tx } from '../../postgres/database.ts'
import { holdLock } from '../../postgres/locks.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

export interface PriceRow {
  product_name: string
  unit: 'vm_hour' | 'gb_hour' | 'gpu_hour' | 'address_hour'
  /** An exact decimal number, as text. */
  usd: string
}

const currentPrices = `SELECT DISTINCT ON (product_name) product_name, unit, usd FROM prices
  WHERE valid_from <= slipway_now() ORDER BY product_name, valid_from DESC`

/** Lists the public prices. The prices of reservations are visible only to their organization and to operators. */
export const listPrices = statement<PriceRow & { unit: Exclude<PriceRow['unit'], 'gpu_hour'> }>(
  'price_list',
  `SELECT product_name, unit, usd::text FROM (${currentPrices}) p
   WHERE product_name NOT LIKE 'reservation-%'
     AND (product_name = 'reserved-address' OR product_name NOT LIKE 'reserved-%') ORDER BY product_name`,
).all

export const findPrice = statement<PriceRow, { productName: string }>(
  'price_find',
  `SELECT product_name, unit, usd::text FROM prices WHERE product_name = :productName AND valid_from <= slipway_now()
   ORDER BY valid_from DESC LIMIT 1`,
).oneBy('productName')

// A price that already applies is not written again, so that the history shows only changes.
const put = statement<never, Columns<PriceRow> & { onlyUnset: boolean }>(
  'price_put',
  `WITH current_prices AS (${currentPrices})
   INSERT INTO prices (product_name, valid_from, unit, usd)
   SELECT w.product_name, slipway_now(), w.unit, trim_scale(w.usd)
   FROM unnest(:product_name::text[], :unit::text[], :usd::numeric[]) AS w (product_name, unit, usd)
   LEFT JOIN current_prices f USING (product_name)
   WHERE f.usd IS NULL OR (NOT :onlyUnset AND f.usd <> w.usd)
   ON CONFLICT (product_name, valid_from) DO UPDATE SET usd = excluded.usd, unit = excluded.unit`,
)

/** Sets prices from now on. Products that are not listed keep their prices. */
export async function setPrices(tx: Tx, prices: PriceRow[], options = { onlyUnset: false }): Promise<void> {
  // A transaction that opens or closes a meter either commits before the prices become valid, or sees them.
  await holdLock(tx, 'prices')
  await put.run(tx, { ...columns(prices, ['product_name', 'unit', 'usd']), onlyUnset: options.onlyUnset })
}
