import { type ListItem, vmTypeNames } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { type Column, printList } from '../../output/print.ts'
import { usd } from '../../output/text.ts'

type Offer = ListItem<'offerList'>

const columns: Column<Offer>[] = [
  { name: 'type', value: (offer) => offer.type },
  { name: 'gpus', value: (offer) => `${offer.gpu_count} x ${offer.gpu_model}`, hideOrder: 1 },
  { name: 'cores', value: (offer) => offer.cpu_cores, align: 'right', hideOrder: 3 },
  { name: 'memory', value: (offer) => `${offer.memory_gb} GB`, align: 'right', hideOrder: 2 },
  { name: 'location', value: (offer) => offer.location },
  { name: 'available', value: (offer) => offer.quantity || 'no', align: 'right' },
  { name: '$/hour', value: (offer) => usd(offer.usd_per_hour), align: 'right' },
  { name: 'quota_left', value: (offer) => offer.quota_left, align: 'right' },
  { name: 'gpu_memory', value: (offer) => `${offer.gpu_memory_gb} GB`, align: 'right', isExtra: true },
  { name: 'scratch', value: (offer) => `${offer.scratch_gb} GB`, align: 'right', isExtra: true },
]

/** How to sort offers. `price` needs no function, because the service returns the cheapest offer first. */
const orders: Record<string, ((a: Offer, b: Offer) => number) | undefined> = {
  price: undefined,
  memory: (a, b) => b.gpu_memory_gb * b.gpu_count - a.gpu_memory_gb * a.gpu_count,
  gpus: (a, b) => b.gpu_count - a.gpu_count,
  available: (a, b) => b.quantity - a.quantity,
  location: (a, b) => a.location.localeCompare(b.location),
}

interface OffersInput {
  gpu?: string
  minGpus?: number
  minMemory?: number
  maxPrice?: number
  location?: string
  available?: boolean
  sort: string
}

export const offers = command<OffersInput>({
  name: 'offers',
  summary: 'show the availability and price of each VM type by location, cheapest first',
  options: [
    {
      flags: '--gpu <gpu>',
      description: 'GPU model, family or VM type, for example a100, a100-80gb or l40s-48gb.4x',
      complete: vmTypeNames,
    },
    { flags: '--min-gpus <count>', description: 'minimum number of GPUs', parse: parseNumber },
    { flags: '--min-memory <gb>', description: 'minimum memory of each GPU, in GB', parse: parseNumber },
    { flags: '--max-price <usd>', description: 'maximum price, in dollars per hour', parse: parseNumber },
    { flags: '--location <locations>', description: 'locations, separated by commas', complete: 'location' },
    { flags: '--available', description: 'only types that are in stock and within the quota' },
    {
      flags: '--sort <order>',
      description: 'price (lowest first), memory, gpus, available (highest first) or location',
      values: Object.keys(orders),
      default: 'price',
    },
  ],
  columns,
  examples: [
    'slipway offers',
    'slipway offers --gpu a100 --min-memory 80 --max-price 2 --available',
    'slipway offers --location us-east1-a --sort available -o json',
  ],
  async run(cli, { gpu, minGpus, minMemory, maxPrice, location, available, sort }) {
    const isType = vmTypeNames.some((type) => type === gpu)
    const found = await cli.client.collect('offerList', {
      project_id: await cli.project(),
      gpu_model: isType ? undefined : gpu,
      min_gpu_count: minGpus,
      min_gpu_memory_gb: minMemory,
      max_usd_per_hour: maxPrice,
      locations: location,
      available: available || undefined,
    })
    const wanted = isType ? found.filter(({ type }) => type === gpu) : found
    const order = orders[sort]
    await printList(cli, order ? wanted.toSorted(order) : wanted, columns, 'offerList')
  },
})
