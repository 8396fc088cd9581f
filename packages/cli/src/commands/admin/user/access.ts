import { command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { printOne } from '../../../output/print.ts'
import { users } from './resource.ts'

export const adminUserReset = command<{ ref: string }>({
  name: 'reset',
  summary: 'create a link that lets a user set a new password',
  arguments: [refArgument(users)],
  examples: [`slipway admin user reset ${users.example}`],
  async run(cli, { ref }) {
    const user_id = await idOf(cli, users, ref)
    await printOne(cli, await cli.operator.adminUserReset({ user_id }))
    cli.note('Send the link to the user. It is shown only once and is valid for one hour.')
  },
})

export const adminUserUnmark = command<{ ref: string }>({
  name: 'unmark',
  summary: 'revoke a user’s operator rights',
  arguments: [refArgument(users)],
  examples: [`slipway admin user unmark ${users.example}`],
  async run(cli, { ref }) {
    const user_id = await idOf(cli, users, ref)
    await printOne(cli, await cli.operator.adminUserUpdate({ user_id }, { is_operator: false }))
  },
})

export const adminUserRemoveTotp = command<{ ref: string }>({
  name: 'remove-totp',
  summary: 'remove the two-factor authentication of a user who lost the authenticator app',
  arguments: [refArgument(users)],
  examples: [`slipway admin user remove-totp ${users.example}`],
  async run(cli, { ref }) {
    const user_id = await idOf(cli, users, ref)
    await cli.operator.adminUserTotpDelete({ user_id })
    cli.note(`Removed the two-factor authentication of ${ref}; all sessions have ended.`)
  },
})
