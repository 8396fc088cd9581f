import type { Member } from '@slipway/sdk'
import { command, type GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { members } from './resource.ts'

const role = {
  flags: '--role <role>',
  description: 'viewer, member, admin or owner',
  complete: ['viewer', 'member', 'admin', 'owner'],
}

export const member: GroupSpec = {
  name: 'member',
  summary: 'people of the organization',
  commands: [
    listCommand(members),
    command<{ email: string; role: Member['role'] }>({
      name: 'add',
      summary: 'add somebody, or invite a new e-mail',
      arguments: [{ syntax: '<email>', description: 'e-mail address' }],
      options: [{ ...role, default: 'member' }],
      examples: ['slipway member add grace@example.com --role admin'],
      async run(cli, { email, role }) {
        const added = await cli.client.memberCreate(
          { organization_id: await cli.organization() },
          { email, role },
        )
        await printOne(cli, added)
        if (added.invite_url) cli.note('Send them the invite URL: it is shown this once.')
      },
    }),
    command<{ ref: string; role: Member['role'] }>({
      name: 'change',
      summary: 'change the role of a member',
      arguments: [refArgument(members)],
      options: [{ ...role, required: true }],
      examples: ['slipway member change grace@example.com --role owner'],
      async run(cli, { ref, role }) {
        const target = { organization_id: await cli.organization(), user_id: await idOf(cli, members, ref) }
        await printOne(cli, await cli.client.memberUpdate(target, { role }))
      },
    }),
    deleteCommand(members, async (cli, user_id) => {
      await cli.client.memberDelete({ organization_id: await cli.organization(), user_id })
      return {}
    }),
  ],
}
