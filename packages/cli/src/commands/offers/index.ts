import { vmTypeNames } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { type Column, printList } from '../../output/print.ts'
import { usd } from '../../output/text.ts'
import { findOffers, type Offer } from './find-offers.ts'

const columns: Column<Offer>[] = [
  { name: 'type', value: (offer) => offer.type },
  { name: 'gpus', value: (offer) => `${offer.num_gpu} x ${offer.gpu}`, spare: 1 },
  { name: 'cores', value: (offer) => offer.cpu_cores, align: 'right', spare: 3 },
  { name: 'memory', value: (offer) => `${offer.memory_gb} GB`, align: 'right', spare: 2 },
  { name: 'location', value: (offer) => offer.location },
  { name: 'available', value: (offer) => (offer.available ? offer.quantity : 'no'), align: 'right' },
  { name: '$/hour', value: (offer) => usd(offer.usd_per_hour), align: 'right' },
  { name: 'quota_left', value: (offer) => offer.quota_left, align: 'right' },
]

export const offers = command<{ gpu?: string; location?: string; available?: boolean }>({
  name: 'offers',
  summary: 'show which VM types are available where, and what they cost, cheapest first',
  options: [
    {
      flags: '--gpu <gpu>',
      description: 'a GPU, a family or a type: a100, a100-80gb, l40s-48gb.4x',
      complete: vmTypeNames,
    },
    { flags: '--location <location>', description: 'one location', complete: 'location' },
    { flags: '--available', description: 'leave out what is out of stock or beyond the quota' },
  ],
  columns,
  examples: [
    'slipway offers',
    'slipway offers --gpu a100 --available',
    'slipway offers --location us-east1-a -o json',
  ],
  async run(cli, { gpu, location, available }) {
    const found = await findOffers(cli, { ...(gpu && { gpu }), ...(location && { location }) })
    const rows = available ? found.filter((offer) => offer.available && offer.quota_left !== 0) : found
    await printList(cli, rows, columns)
  },
})
