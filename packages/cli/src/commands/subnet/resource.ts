import type { Subnet } from '@slipway/sdk'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'

export const subnets: Resource<Subnet> = {
  noun: 'subnet',
  title: 'subnet',
  example: 'training-a',
  otherExample: 'training-b',
  columns: [
    { name: 'name', value: (subnet) => subnet.name },
    { name: 'cidr', value: (subnet) => subnet.cidr },
    { name: 'location', value: (subnet) => subnet.location },
    ageColumn,
    idColumn,
  ],
  route: 'subnetList',
  list: async (cli) => cli.client.collect('subnetList', { project_id: await cli.project() }),
  named: ownName,
}
