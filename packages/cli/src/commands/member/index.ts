import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { memberAdd } from './add.ts'
import { memberChange } from './change.ts'
import { members } from './resource.ts'

export const member: GroupSpec = {
  name: 'member',
  summary: 'people of the organization',
  commands: [
    listCommand(members),
    memberAdd,
    memberChange,
    deleteCommand(members, async (cli, user_id) => {
      await cli.client.memberDelete({ organization_id: await cli.organization(), user_id })
      return {}
    }),
  ],
}
