import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand } from '../../core/generic-commands.ts'
import { sshKeyCreate } from './create.ts'
import { sshKeys } from './resource.ts'

export const sshKey: GroupSpec = {
  name: 'ssh-key',
  summary: 'SSH keys for the project’s VMs',
  commands: [
    listCommand(sshKeys),
    sshKeyCreate,
    deleteCommand(
      sshKeys,
      async (cli, ssh_key_id) => {
        await cli.client.sshKeyDelete({ project_id: await cli.project(), ssh_key_id })
        return {}
      },
      { loses: 'VMs that already have a deleted key will keep it.' },
    ),
  ],
}
