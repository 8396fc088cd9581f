import { vmTypeNames } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { printOne } from '../../output/print.ts'

export const devCapacity = command<{ type: string; location: string; free: string }>({
  name: 'capacity',
  summary: 'set how many VMs of a type can still be created in a location',
  arguments: [
    { syntax: '<type>', description: 'VM type, see `slipway offers`', complete: vmTypeNames },
    { syntax: '<location>', description: 'location', complete: 'location' },
    { syntax: '<free>', description: 'number of VMs; 0 makes the type out of stock' },
  ],
  examples: ['slipway dev capacity a100.1x us-east1-a 0', 'slipway dev capacity a100.1x us-east1-a 3'],
  async run(cli, { type, location, free }) {
    await printOne(cli, await cli.levers.capacity.set({ type, location, free: parseNumber(free) }))
  },
})
