import { command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { adminImages, locationsOption } from './resource.ts'

export const adminImageChange = command<{ ref: string; locations: string[] }>({
  name: 'change',
  summary: 'change the locations of an image',
  arguments: [refArgument(adminImages)],
  options: [locationsOption],
  examples: ['slipway admin image change debian13:latest --locations us-east1-a'],
  async run(cli, { ref, locations }) {
    const image_id = await idOf(cli, adminImages, ref)
    await printOne(cli, await cli.operator.adminImageUpdate({ image_id }, { locations }))
  },
})
