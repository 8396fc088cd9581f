import type { Role } from '@slipway/sdk'
import { command } from '../../core/command.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { printOne } from '../../output/print.ts'
import { members, printRemainingKeys, revokeKeysOption, roleOption } from './resource.ts'

export const memberChange = command<{ ref: string; role: Role; revokeKeys?: boolean }>({
  name: 'change',
  summary: 'change the role of a member',
  arguments: [refArgument(members)],
  options: [{ ...roleOption, required: true }, revokeKeysOption],
  examples: [
    'slipway member change grace@example.com --role owner',
    'slipway member change grace@example.com --role viewer --revoke-keys',
  ],
  async run(cli, { ref, role, revokeKeys = false }) {
    const target = { organization_id: await cli.organization(), user_id: await idOf(cli, members, ref) }
    const changed = await cli.client.memberUpdate({ ...target, revoke_keys: revokeKeys }, { role })
    const { access_keys = [], ...member } = changed
    await printOne(cli, cli.format.kind === 'table' ? member : changed)
    printRemainingKeys(cli, access_keys)
  },
})
