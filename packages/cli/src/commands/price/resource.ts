import type { Price } from '@slipway/sdk'
import type { Listable } from '../../core/resource.ts'
import { usd, words } from '../../output/text.ts'

export const prices: Listable<Price> = {
  noun: 'price',
  title: 'price',
  columns: [
    { name: 'product', value: (price) => price.product_name },
    { name: '$', value: (price) => usd(price.usd), align: 'right' },
    { name: 'per', value: (price) => words(price.unit) },
  ],
  route: 'priceList',
  list: async (cli) => cli.client.collect('priceList', { project_id: await cli.project() }),
}
