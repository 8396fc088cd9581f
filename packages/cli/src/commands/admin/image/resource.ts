import type { Image } from '@slipway/sdk'
import type { OptionSpec } from '../../../core/command.ts'
import type { Resource } from '../../../core/resource.ts'
import { images } from '../../image/resource.ts'

/** Operators see the images of all locations. */
export const adminImages: Resource<Image> = {
  ...images,
  route: 'adminImageList',
  list: (cli) => cli.operator.collect('adminImageList', {}),
}

export const locationsOption: OptionSpec = {
  flags: '--locations <names>',
  description: 'locations that can use the image, separated by commas',
  required: true,
  isList: true,
}
