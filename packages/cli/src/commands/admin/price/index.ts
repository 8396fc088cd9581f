import type { GroupSpec } from '../../../core/command.ts'
import { adminPriceList } from './list.ts'
import { adminPriceSet } from './set.ts'

export const adminPrice: GroupSpec = {
  name: 'price',
  summary: 'prices',
  commands: [adminPriceList, adminPriceSet],
}
