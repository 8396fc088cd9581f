import { diskTypes, vmTypeNames } from '@slipway/sdk'
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
      description: 'PRODUCT=USD, per VM hour, or per GiB hour for disks',
      complete: [...vmTypeNames, ...diskTypes].map((product) => `${product}=`),
    },
  ],
  examples: [
    'slipway admin price set a100.1x=1.45 a100.2x=2.90',
    'slipway admin price set persistent-ssd=0.00013',
  ],
  async run(cli, input) {
    const items = input.prices.map(parsePair).map(([product_name, usd]) => {
      const isDisk = diskTypes.some((type) => type === product_name)
      return { product_name, unit: isDisk ? ('gb_hour' as const) : ('vm_hour' as const), usd }
    })
    await printList(cli, (await cli.operator.adminPriceSet({ items })).items, prices.columns, 'adminPriceSet')
  },
})
