import type { Member } from '@slipway/sdk'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { memberAdd, memberInvite } from './add.ts'
import { memberChange } from './change.ts'
import { members, printRemainingKeys, revokeKeysOption } from './resource.ts'

export const member: GroupSpec = {
  name: 'member',
  summary: 'members of the organization',
  commands: [
    listCommand(members),
    memberAdd,
    memberInvite,
    memberChange,
    deleteCommand<Member, { revokeKeys?: boolean }>(
      members,
      async (cli, user_id, { revokeKeys = false }) => {
        const target = { organization_id: await cli.organization(), user_id, revoke_keys: revokeKeys }
        printRemainingKeys(cli, (await cli.client.memberDelete(target)).access_keys)
        return {}
      },
      { removesFrom: 'the organization', options: [revokeKeysOption] },
    ),
  ],
}
