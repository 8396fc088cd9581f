import type { AccessKey } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { deleteCommand } from '../../core/generic-commands.ts'
import type { Resource } from '../../core/resource.ts'

type Revoke = (
  cli: Cli,
  target: { key_id: string; revoke_descendants: boolean },
) => Promise<{ revoked_descendants?: string[] }>

/**
 * Returns the command that deletes keys of a project, an organization or the operators. By default, the keys
 * that a deleted key has created are revoked too.
 */
export const deleteKeyCommand = (resource: Resource<AccessKey>, revoke: Revoke, group?: string) =>
  deleteCommand<AccessKey, { keepDescendants?: boolean }>(
    resource,
    async (cli, key_id, { keepDescendants = false }) => {
      const { revoked_descendants = [] } = await revoke(cli, { key_id, revoke_descendants: !keepDescendants })
      if (revoked_descendants.length > 0)
        cli.say(`Also revoked the keys that this key created: ${revoked_descendants.join(', ')}.`)
      return {}
    },
    {
      ...(group && { group }),
      options: [{ flags: '--keep-descendants', description: 'do not revoke the keys that this key created' }],
    },
  )
