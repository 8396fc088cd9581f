import type { RouteResponse } from '@slipway/sdk'
import type { Resource } from '../../../core/resource.ts'
import { ageOf } from '../../../output/text.ts'

type AdminOrganization = RouteResponse<'adminOrganizationUpdate'>

/** All organizations, with their suspension state, as operators see them. */
export const adminOrganizations: Resource<AdminOrganization> = {
  noun: 'org',
  title: 'organization',
  example: 'harbour-labs',
  columns: [
    { name: 'name', value: (organization) => organization.name },
    {
      name: 'state',
      value: (organization) => (organization.suspended ? 'suspended' : 'active'),
      isState: true,
    },
    { name: 'age', value: (organization) => ageOf(organization.created_at), align: 'right', hideOrder: 1 },
    { name: 'id', value: (organization) => organization.id },
  ],
  route: 'adminOrganizationList',
  list: (cli) => cli.operator.collect('adminOrganizationList', {}),
  named: (organization) => organization,
}
