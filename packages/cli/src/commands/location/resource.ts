import type { Location } from '@slipway/sdk'
import type { Resource } from '../../core/resource.ts'

export const locations: Resource<Location> = {
  noun: 'location',
  example: 'us-east1-a',
  title: 'location',
  columns: [
    { name: 'name', value: (location) => location.name },
    { name: 'region', value: (location) => location.region },
    { name: 'zone', value: (location) => location.zone },
    { name: 'description', value: (location) => location.description },
  ],
  route: 'locationList',
  list: async (cli) => cli.client.collect('locationList', { project_id: await cli.project() }),
  named: (location) => ({ id: location.name, name: location.name }),
}
