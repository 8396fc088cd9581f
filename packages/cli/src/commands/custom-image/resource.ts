import type { CustomImage } from '@slipway/sdk'
import { labelsColumn, labelsText } from '../../core/labels.ts'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'
import { ageOf } from '../../output/text.ts'
import { storedText } from '../snapshot/resource.ts'

export const customImages: Resource<CustomImage> = {
  noun: 'custom-image',
  title: 'custom image',
  example: 'trainer:v1',
  otherExample: 'trainer:v2',
  columns: [
    { name: 'name', value: (image) => image.name },
    { name: 'size', value: (image) => image.size, align: 'right' },
    { name: 'stored', value: (image) => storedText(image.stored_bytes), align: 'right' },
    { name: 'state', value: (image) => image.state, isState: true },
    { name: 'consistency', value: (image) => image.consistency, hideOrder: 1 },
    { name: 'locations', value: (image) => image.locations.join(','), hideOrder: 2 },
    ageColumn,
    idColumn,
    labelsColumn,
  ],
  route: 'customImageList',
  list: async (cli, filter) =>
    cli.client.collect('customImageList', { project_id: await cli.project(), ...filter }),
  named: ownName,
  fields: (image) => [
    ['Name', image.name],
    ['Id', image.id],
    ['State', image.state],
    ['Description', image.description || '-'],
    ['Tags', image.tags.join(', ') || '-'],
    ['Created from', image.source_id],
    ['Size', image.size],
    ['Stored', storedText(image.stored_bytes)],
    ['Consistency', image.consistency || '-'],
    ['Locations', image.locations.join(', ')],
    ['Labels', labelsText(image.labels) || '-'],
    ['Protected', image.deletion_protection ? 'from deletion' : 'no'],
    ['Created', `${image.created_at} (${ageOf(image.created_at)} ago)`],
  ],
}
