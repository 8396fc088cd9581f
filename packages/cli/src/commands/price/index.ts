import type { GroupSpec } from '../../core/command.ts'
import { listCommand } from '../../core/generic-commands.ts'
import { prices } from './resource.ts'

export const price: GroupSpec = {
  name: 'price',
  summary: 'current prices',
  commands: [listCommand(prices)],
}
