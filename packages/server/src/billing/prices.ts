import { type Price, productUnits } from '@slipway/contract'
import { invalidField } from '../domain/failure.ts'
import { didYouMean, nearest } from '../domain/nearest.ts'
import type { Tx } from '../postgres/database.ts'
import { setPrices } from '../store/billing/prices.ts'
import { emit, type Requester } from '../store/events/events.ts'

/** New prices apply from now on; past usage keeps its price. */
export async function changePrices(tx: Tx, by: Requester, items: Price[]): Promise<void> {
  items.forEach(({ product_name, unit }, i) => {
    const expected = productUnits.get(product_name)
    if (!expected)
      throw invalidField(
        `items/${i}/product_name`,
        `there is no product ${product_name}${didYouMean(nearest(product_name, [...productUnits.keys()]))}`,
      )
    if (unit !== expected) throw invalidField(`items/${i}/unit`, `must be ${expected} for ${product_name}`)
    if (items.findIndex((item) => item.product_name === product_name) < i)
      throw invalidField(`items/${i}/product_name`, `${product_name} is listed twice`)
  })
  await setPrices(
    tx,
    items.map((item) => ({ ...item, usd: String(item.usd) })),
  )
  await emit(tx, { ...by, type: 'prices.updated', resourceType: 'prices', resourceId: '', data: { items } })
}
