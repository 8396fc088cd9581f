import type { Organization } from '@slipway/sdk'
import { ownName, type Resource } from '../../core/resource.ts'

export const organizations: Resource<Organization> = {
  noun: 'org',
  title: 'organization',
  example: 'harbour-labs',
  columns: [
    { name: 'name', value: (organization) => organization.name },
    { name: 'id', value: (organization) => organization.id },
    { name: 'payment_customer_id', value: (organization) => organization.payment_customer_id, hideOrder: 1 },
  ],
  route: 'organizationList',
  list: (cli) => cli.client.collect('organizationList', {}),
  named: ownName,
}
