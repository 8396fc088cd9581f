import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { memberAdd, memberInvite } from './add.ts'
import { memberChange } from './change.ts'
import { members } from './resource.ts'

export const member: GroupSpec = {
  name: 'member',
  summary: 'members of the organization',
  commands: [
    listCommand(members),
    memberAdd,
    memberInvite,
    memberChange,
    deleteCommand(members, async (cli, user_id) => {
      const target = { organization_id: await cli.organization(), user_id }
      const { access_keys } = await cli.client.memberDelete(target)
      const names = access_keys.map(({ name, prefix }) => `${name} (${prefix})`)
      if (names.length > 0) cli.note(`Keys that this member created stay valid: ${names.join(', ')}.`)
      return {}
    }),
  ],
}
