import type { Role } from '@slipway/sdk'
import { command } from '../../../core/command.ts'
import { idOf } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { roleOption } from '../../member/resource.ts'
import { adminOrganizations } from '../org/resource.ts'

interface UserCreateInput {
  email: string
  org?: string
  role?: Role
  operator?: boolean
}

export const adminUserCreate = command<UserCreateInput>({
  name: 'create',
  summary: 'add a user',
  arguments: [{ syntax: '<email>', description: 'e-mail address' }],
  options: [
    { flags: '--org <organization>', description: 'also make the user a member of this organization' },
    roleOption,
    { flags: '--operator', description: 'give the user operator rights' },
  ],
  examples: ['slipway admin user create ada@example.com --org harbour-labs --role owner'],
  async run(cli, { email, org, role, operator }) {
    const organization_id = org && (await idOf(cli, adminOrganizations, org))
    const body = { email, organization_id: organization_id || undefined, role, is_operator: operator }
    await printOne(cli, await cli.operator.adminUserCreate(body))
  },
})
