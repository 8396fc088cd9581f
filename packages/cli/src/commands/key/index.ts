import type { GroupSpec } from '../../core/command.ts'
import { listCommand } from '../../core/generic-commands.ts'
import { keyCreate } from './create.ts'
import { deleteKeyCommand } from './delete.ts'
import { accessKeys } from './resource.ts'

export const key: GroupSpec = {
  name: 'key',
  summary: 'access keys of the project',
  commands: [
    listCommand(accessKeys),
    keyCreate,
    deleteKeyCommand(accessKeys, async (cli, target) =>
      cli.client.accessKeyDelete({ project_id: await cli.project(), ...target }),
    ),
  ],
}
