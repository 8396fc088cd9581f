import type { Role } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { members, roleOption } from './resource.ts'

export const memberAdd = command<{ email: string; role: Role }>({
  name: 'add',
  summary: 'invite a person to the organization',
  arguments: [{ syntax: '<email>', description: 'e-mail address' }],
  options: [{ ...roleOption, default: 'member' }],
  examples: ['slipway member add grace@example.com --role admin'],
  async run(cli, { email, role }) {
    const target = { organization_id: await cli.organization() }
    const added = await cli.client.memberCreate(target, { email, role })
    await printOne(cli, added)
    cli.note('Send the invitation URL to the person. It is shown only once.')
  },
})

export const memberInvite = command<{ ref: string }>({
  name: 'invite',
  summary: 'create a new invitation link for a person who was already invited',
  arguments: [refArgument(members)],
  examples: ['slipway member invite grace@example.com'],
  async run(cli, { ref }) {
    const target = { organization_id: await cli.organization(), user_id: await idOf(cli, members, ref) }
    await printOne(cli, await cli.client.memberInvite(target))
    cli.note(
      'Send the new invitation URL to the person. It is shown only once; the previous URL no longer works.',
    )
  },
})
