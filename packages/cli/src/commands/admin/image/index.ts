import type { Image, Price } from '@slipway/sdk'
import { command, type GroupSpec } from '../../../core/command.ts'
import { deleteCommand, listCommand } from '../../../core/generic-commands.ts'
import { parseList, parsePair } from '../../../core/parse.ts'
import { idOf, type Resource, refArgument } from '../../../core/resource.ts'
import { type Column, printList, printOne } from '../../../output/print.ts'
import { usd, words } from '../../../output/text.ts'
import { images } from '../../image/resource.ts'

const adminImages: Resource<Image> = { ...images, list: (cli) => cli.operator.collect('adminImageList', {}) }
const locations = {
  flags: '--locations <names>',
  description: 'where it can be used, with commas',
  required: true,
  parse: parseList,
}

export const adminImage: GroupSpec = {
  name: 'image',
  summary: 'images of the catalogue',
  commands: [
    listCommand(adminImages, { group: 'admin' }),
    command<{
      name: string
      locations: string[]
      description?: string
      tags?: string[]
      source?: Record<string, unknown>
    }>({
      name: 'create',
      summary: 'import an image',
      arguments: [{ syntax: '<name>', description: 'name and tag: ubuntu24.04-nvidia:latest' }],
      options: [
        locations,
        { flags: '--description <text>', description: 'what it is' },
        { flags: '--tags <tags>', description: 'with commas', parse: parseList },
        { flags: '--source <json>', description: 'what the engine needs to find it', parse: JSON.parse },
      ],
      examples: ['slipway admin image create debian13:latest --locations us-east1-a,eu-north1-a'],
      async run(cli, { name, locations, description, tags, source }) {
        await printOne(
          cli,
          await cli.operator.adminImageCreate({ name, locations, description, tags, source }),
        )
      },
    }),
    command<{ ref: string; locations: string[] }>({
      name: 'change',
      summary: 'change where an image can be used',
      arguments: [refArgument(adminImages)],
      options: [locations],
      examples: ['slipway admin image change debian13:latest --locations us-east1-a'],
      async run(cli, { ref, locations }) {
        const image_id = await idOf(cli, adminImages, ref)
        await printOne(cli, await cli.operator.adminImageUpdate({ image_id }, { locations }))
      },
    }),
    deleteCommand(
      adminImages,
      async (cli, image_id) => {
        await cli.operator.adminImageDelete({ image_id })
        return {}
      },
      { group: 'admin' },
    ),
  ],
}

export const adminLocation: GroupSpec = {
  name: 'location',
  summary: 'locations and their engines',
  commands: [
    command({
      name: 'list',
      summary: 'list locations',
      examples: ['slipway admin location list'],
      async run(cli) {
        await printList(cli, await cli.operator.collect('adminLocationList', {}), [
          { name: 'name', value: (location) => location.name },
          { name: 'engine', value: (location) => location.engine },
          { name: 'storage', value: (location) => location.storage },
          { name: 'public_ipv4', value: (location) => location.public_ipv4 },
          { name: 'description', value: (location) => location.description, spare: 1 },
        ])
      },
    }),
  ],
}

export const adminPrice: GroupSpec = {
  name: 'price',
  summary: 'prices',
  commands: [
    command({
      name: 'list',
      summary: 'list prices in force',
      examples: ['slipway admin price list'],
      async run(cli) {
        await printList(cli, await cli.operator.collect('adminPriceList', {}), priceColumns)
      },
    }),
    command<{ prices: string[] }>({
      name: 'set',
      summary: 'set prices, valid from now; others stay',
      arguments: [
        {
          syntax: '<prices...>',
          description: 'PRODUCT=DOLLARS per hour of a VM, or per GB and hour of a disk',
          complete: 'type',
        },
      ],
      examples: [
        'slipway admin price set a100.1x=1.45 a100.2x=2.90',
        'slipway admin price set persistent-ssd=0.00013',
      ],
      async run(cli, { prices }) {
        const items = prices.map(parsePair).map(([product_name, dollars]) => {
          const unit = /^(persistent-ssd|shared-volume)$/.test(product_name)
            ? ('gb_hour' as const)
            : ('vm_hour' as const)
          return { product_name, unit, usd: dollars }
        })
        await printList(cli, (await cli.operator.adminPriceSet({ items })).items, priceColumns)
      },
    }),
  ],
}

const priceColumns: Column<Price>[] = [
  { name: 'product', value: (price) => price.product_name },
  { name: '$', value: (price) => usd(price.usd), align: 'right' },
  { name: 'per', value: (price) => words(price.unit) },
]
