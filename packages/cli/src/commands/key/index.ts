import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { keyCreate } from './create.ts'
import { accessKeys } from './resource.ts'

export const key: GroupSpec = {
  name: 'key',
  summary: 'access keys of the project',
  commands: [
    listCommand(accessKeys),
    keyCreate,
    deleteCommand(accessKeys, async (cli, key_id) => {
      await cli.client.accessKeyDelete({ project_id: await cli.project(), key_id })
      return {}
    }),
  ],
}
