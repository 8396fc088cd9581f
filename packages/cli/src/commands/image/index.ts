import type { GroupSpec } from '../../core/command.ts'
import { command } from '../../core/command.ts'
import { listCommand, showCommand } from '../../core/generic-commands.ts'
import { resolveAmong } from '../../core/names.ts'
import { printList } from '../../output/print.ts'
import { bar, usd, words } from '../../output/text.ts'
import { locations } from '../location/resource.ts'
import { images } from './resource.ts'

export const image: GroupSpec = {
  name: 'image',
  summary: 'images that VMs can start from',
  commands: [
    listCommand(images),
    showCommand(images, async (cli, id) => resolveAmong('image', id, await images.list(cli), images.named)),
  ],
}

export const location: GroupSpec = {
  name: 'location',
  summary: 'places where VMs can be',
  commands: [listCommand(locations)],
}

export const price: GroupSpec = {
  name: 'price',
  summary: 'prices in force',
  commands: [
    command({
      name: 'list',
      summary: 'list prices',
      examples: ['slipway price list', 'slipway price list -o json'],
      async run(cli) {
        await printList(cli, await cli.client.collect('priceList', { project_id: await cli.project() }), [
          { name: 'product', value: (price) => price.product_name },
          { name: '$', value: (price) => usd(price.usd), align: 'right' },
          { name: 'per', value: (price) => words(price.unit) },
        ])
      },
    }),
  ],
}

export const quota: GroupSpec = {
  name: 'quota',
  summary: 'what the project may use',
  commands: [
    command({
      name: 'list',
      summary: 'list quotas and what is used of them',
      examples: ['slipway quota list', 'slipway quota list -o columns=name,available'],
      async run(cli) {
        await printList(cli, await cli.client.collect('quotaList', { project_id: await cli.project() }), [
          { name: 'name', value: (quota) => quota.name },
          { name: 'used', value: (quota) => quota.used, align: 'right' },
          { name: 'max', value: (quota) => quota.max, align: 'right' },
          { name: 'available', value: (quota) => quota.available, align: 'right' },
          {
            name: 'share',
            value: (quota) => bar(quota.max > 0 ? quota.used / quota.max : 0, 20) || ' ',
            spare: 1,
          },
        ])
      },
    }),
  ],
}
