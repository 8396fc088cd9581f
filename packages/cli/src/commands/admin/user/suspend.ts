import { type AnyCommand, command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { users } from './resource.ts'

function suspensionCommand(name: 'suspend' | 'restore', summary: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(users)],
    examples: [`slipway admin user ${name} ${users.example}`],
    async run(cli, { ref }) {
      const user_id = await idOf(cli, users, ref)
      await printOne(cli, await cli.operator.adminUserUpdate({ user_id }, { suspended: name === 'suspend' }))
    },
  })
}

export const adminUserSuspend = suspensionCommand('suspend', 'suspend a user')
export const adminUserRestore = suspensionCommand('restore', 'lift the suspension of a user')
