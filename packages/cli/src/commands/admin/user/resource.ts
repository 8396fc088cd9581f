import type { RouteResponse } from '@slipway/sdk'
import { ageColumn, idColumn, type Resource } from '../../../core/resource.ts'
import { ageOf } from '../../../output/text.ts'

type AdminUser = RouteResponse<'adminUserUpdate'>

export const users: Resource<AdminUser> = {
  noun: 'user',
  title: 'user',
  example: 'ada@example.com',
  reference: 'e-mail address or id of the user',
  columns: [
    { name: 'email', value: (user) => user.email },
    { name: 'state', value: (user) => (user.suspended ? 'suspended' : user.state), isState: true },
    { name: 'operator', value: (user) => (user.is_operator ? 'yes' : '') },
    { name: 'signed_in', value: (user) => ageOf(user.last_sign_in_at), align: 'right', hideOrder: 2 },
    ageColumn,
    idColumn,
  ],
  route: 'adminUserList',
  list: (cli) => cli.operator.collect('adminUserList', {}),
  named: (user) => ({ id: user.id, name: user.email }),
}
