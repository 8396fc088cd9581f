import type { Role } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { members, roleOption } from './resource.ts'

export const memberChange = command<{ ref: string; role: Role }>({
  name: 'change',
  summary: 'change the role of a member',
  arguments: [refArgument(members)],
  options: [{ ...roleOption, required: true }],
  examples: ['slipway member change grace@example.com --role owner'],
  async run(cli, { ref, role }) {
    const target = { organization_id: await cli.organization(), user_id: await idOf(cli, members, ref) }
    await printOne(cli, await cli.client.memberUpdate(target, { role }))
  },
})
