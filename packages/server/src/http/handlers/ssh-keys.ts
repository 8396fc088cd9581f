import { createSshKey, removeSshKey } from '../../accounts/ssh-keys.ts'
import { listSshKeys } from '../../store/compute/ssh-keys.ts'
import { sshKeyView } from '../../views/identity.ts'
import { emptyResponse, type Handlers } from '../context.ts'
import { pageById } from '../pages.ts'

export const sshKeyHandlers = {
  sshKeyList: (context) =>
    pageById(context, (...page) => listSshKeys(context.tx, context.project.projectId, ...page), sshKeyView),

  sshKeyCreate: async ({ tx, by, body }) => sshKeyView(await createSshKey(tx, by, body)),

  sshKeyDelete: ({ tx, by, params }) => emptyResponse(removeSshKey(tx, by, params.ssh_key_id)),
} satisfies Partial<Handlers>
