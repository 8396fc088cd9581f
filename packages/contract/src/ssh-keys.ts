import Type, { type Static } from 'typebox'
import { defineRoutes } from './route.ts'
import { body, DisplayName, Empty, NonEmptyTimestamp, PageQuery, pagedList, record, Uuid } from './schema.ts'
import { sshKeyPattern } from './ssh-key.ts'

/** A line copied from a `.pub` file. */
export const SshPublicKey = Type.String({
  maxLength: 4096,
  format: 'ssh-public-key',
  pattern: sshKeyPattern,
  description:
    'One line in OpenSSH format. Supported types: ed25519, ecdsa, rsa with at least 2048 bits, and the `sk-` types of security tokens. At most 4,096 characters. A line break at the end is accepted.',
})

export const SshKey = record('SshKey', {
  id: Uuid,
  name: DisplayName,
  public_key: Type.String({ description: 'The public key, as it was sent.' }),
  type: Type.String({ examples: ['ssh-ed25519'] }),
  fingerprint: Type.String({
    description: 'The fingerprint, as `ssh-keygen -l` shows it.',
    examples: ['SHA256:2gFQdeJQ7YRcHCyPzMVXWfYDlEHBuoKXbW5ynEDXPnA'],
  }),
  created_at: NonEmptyTimestamp,
})
export type SshKey = Static<typeof SshKey>

export const sshKeyRoutes = defineRoutes({
  sshKeyList: {
    method: 'GET',
    path: '/v0.1/projects/{project_id}/ssh-keys',
    tag: 'VMs',
    summary: 'List SSH keys',
    access: 'viewer',
    worksUnpaid: true,
    query: PageQuery,
    response: pagedList('SshKeyList', SshKey),
  },
  sshKeyCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/ssh-keys',
    tag: 'VMs',
    summary: 'Register an SSH key',
    description:
      'Use the id of the key in `ssh_key_ids` when you create a VM. VMs keep the keys that they were created with, even after the registered key is removed. SSH keys count toward the organization’s quota `ssh_keys`.',
    access: 'member',
    worksUnpaid: true,
    body: body('SshKeyCreate', { name: DisplayName, public_key: SshPublicKey }),
    response: SshKey,
    errors: ['already_exists', 'quota_exceeded'],
  },
  sshKeyDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/ssh-keys/{ssh_key_id}',
    tag: 'VMs',
    summary: 'Remove an SSH key',
    access: 'member',
    worksUnpaid: true,
    response: Empty,
  },
})
