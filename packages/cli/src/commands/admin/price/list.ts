import { command } from '../../../core/command.ts'
import { printList } from '../../../output/print.ts'
import { prices } from '../../price/resource.ts'

export const adminPriceList = command({
  name: 'list',
  summary: 'list current prices',
  columns: prices.columns,
  examples: ['slipway admin price list'],
  async run(cli) {
    await printList(cli, await cli.operator.collect('adminPriceList', {}), prices.columns, 'adminPriceList')
  },
})
