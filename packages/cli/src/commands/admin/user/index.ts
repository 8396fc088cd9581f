import type { GroupSpec } from '../../../core/command.ts'
import { listCommand, showCommand } from '../../../core/generic-commands.ts'
import { adminUserRemoveTotp, adminUserReset, adminUserUnmark } from './access.ts'
import { adminUserCreate } from './create.ts'
import { users } from './resource.ts'
import { adminUserRestore, adminUserSuspend } from './suspend.ts'

export const adminUser: GroupSpec = {
  name: 'user',
  summary: 'users',
  commands: [
    listCommand(users, { group: 'admin' }),
    showCommand(users, (cli, user_id) => cli.operator.adminUserGet({ user_id }), { group: 'admin' }),
    adminUserCreate,
    adminUserSuspend,
    adminUserRestore,
    adminUserReset,
    adminUserUnmark,
    adminUserRemoveTotp,
  ],
}
