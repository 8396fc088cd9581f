import { createSshKey, removeSshKey } from '../../accounts/ssh-keys.ts'
import { listSshKeys } from '../../store/compute/ssh-keys.ts'
import { sshKeyView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { pageById } from '../pages.ts'

export const sshKeyHandlers: Handlers<'sshKeyList' | 'sshKeyCreate' | 'sshKeyDelete'> = {
  sshKeyList(context) {
    const { tx, project } = context
    const read = (before: string | null, limit: number) => listSshKeys(tx, project.projectId, before, limit)
    return pageById(context, read, sshKeyView)
  },

  sshKeyCreate: async ({ tx, by, body }) => sshKeyView(await createSshKey(tx, by, body)),

  async sshKeyDelete({ tx, by, params }) {
    await removeSshKey(tx, by, params.ssh_key_id)
    return {}
  },
}
