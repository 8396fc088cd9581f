import type { Image } from '@slipway/sdk'
import { idColumn, ownName, type Resource } from '../../core/resource.ts'

export const images: Resource<Image> = {
  noun: 'image',
  title: 'image',
  example: 'ubuntu24.04-nvidia:latest',
  otherExample: 'debian12:latest',
  columns: [
    { name: 'name', value: (image) => image.name },
    { name: 'description', value: (image) => image.description, hideOrder: 2 },
    { name: 'tags', value: (image) => image.tags.join(','), hideOrder: 3 },
    { name: 'locations', value: (image) => image.locations.join(','), hideOrder: 1 },
    { name: 'size_bytes', value: (image) => image.size_bytes || '', align: 'right', isExtra: true },
    idColumn,
  ],
  route: 'imageList',
  list: async (cli) => cli.client.collect('imageList', { project_id: await cli.project() }),
  named: ownName,
}
