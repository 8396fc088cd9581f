import { productUnits } from '@slipway/sdk'
import { command } from '../../../core/command.ts'
import { parsePair } from '../../../core/parse.ts'
import { printList } from '../../../output/print.ts'
import { prices } from '../../price/resource.ts'

export const adminPriceSet = command<{ prices: string[] }>({
  name: 'set',
  summary: 'set prices that apply from now on; other prices do not change',
  arguments: [
    {
      syntax: '<prices...>',
      description:
        'PRODUCT=USD: the price per hour for a VM or reserved address, or per GiB-hour for a disk, custom image or snapshot',
      complete: [...productUnits.keys()].map((product) => `${product}=`),
    },
  ],
  examples: [
    'slipway admin price set a100.1x=1.45 a100.2x=2.90',
    'slipway admin price set persistent-ssd=0.00013',
  ],
  async run(cli, input) {
    // The service rejects an unknown product, whatever its unit.
    const items = input.prices.map(parsePair).map(([product_name, usd]) => ({
      product_name,
      unit: productUnits.get(product_name) ?? 'vm_hour',
      usd,
    }))
    await printList(cli, (await cli.operator.adminPriceSet({ items })).items, prices.columns, 'adminPriceSet')
  },
})
