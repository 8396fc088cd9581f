import { diskTypes, type Price, vmTypeNames } from '@slipway/contract'
import { invalidField } from '../domain/failure.ts'
import { didYouMean, nearest } from '../domain/nearest.ts'
import type { Tx } from '../postgres/database.ts'
import { type PriceRow, setPrices } from '../store/billing/prices.ts'
import { emit, type Requester } from '../store/events/events.ts'

/** New prices apply from now on; past usage keeps its price. */
export async function changePrices(tx: Tx, by: Requester, items: Price[]): Promise<void> {
  items.forEach(({ product_name, unit }, i) => {
    const expected = unitOf(product_name)
    if (!expected)
      throw invalidField(
        `items/${i}/product_name`,
        `there is no product ${product_name}${didYouMean(nearest(product_name, products))}`,
      )
    if (unit !== expected)
      throw invalidField(`items/${i}/unit`, `the price of ${product_name} is per ${expected}`)
    if (items.findIndex((item) => item.product_name === product_name) < i)
      throw invalidField(`items/${i}/product_name`, `${product_name} is named twice`)
  })
  await setPrices(
    tx,
    items.map((item) => ({ ...item, usd: String(item.usd) })),
  )
  await emit(tx, { ...by, type: 'prices.updated', resourceType: 'prices', resourceId: '', data: { items } })
}

const products = [...vmTypeNames, ...diskTypes]

const unitOf = (productName: string): PriceRow['unit'] | undefined =>
  vmTypeNames.includes(productName)
    ? 'vm_hour'
    : (diskTypes as readonly string[]).includes(productName)
      ? 'gb_hour'
      : undefined
