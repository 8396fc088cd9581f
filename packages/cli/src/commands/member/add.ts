import type { Role } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'
import { roleOption } from './resource.ts'

export const memberAdd = command<{ email: string; role: Role }>({
  name: 'add',
  summary: 'add somebody, or invite a new e-mail',
  arguments: [{ syntax: '<email>', description: 'e-mail address' }],
  options: [{ ...roleOption, default: 'member' }],
  examples: ['slipway member add grace@example.com --role admin'],
  async run(cli, { email, role }) {
    const target = { organization_id: await cli.organization() }
    const added = await cli.client.memberCreate(target, { email, role })
    await printOne(cli, added)
    if (added.invite_url) cli.note('Send them the invite URL: it is shown this once.')
  },
})
