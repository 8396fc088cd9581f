import Type, { type Static } from 'typebox'
import { defineRoutes } from './route.ts'
import { body, DisplayName, Empty, PageQuery, pagedList, record, Timestamp, Uuid } from './schema.ts'
import { sshKeyPattern } from './ssh-key.ts'

/** A line as people copy it from a `.pub` file. */
export const SshPublicKey = Type.String({
  maxLength: 16384,
  format: 'ssh-public-key',
  pattern: sshKeyPattern,
  description:
    'One line in OpenSSH form: ed25519, ecdsa, rsa of at least 2048 bits, or their `sk-` forms. A line break at its end is accepted.',
})

export const SshKey = record('SshKey', {
  id: Uuid,
  name: DisplayName,
  public_key: Type.String({ description: 'As it was sent.' }),
  type: Type.String({ examples: ['ssh-ed25519'] }),
  fingerprint: Type.String({
    description: 'As `ssh-keygen -l` shows it.',
    examples: ['SHA256:2gFQdeJQ7YRcHCyPzMVXWfYDlEHBuoKXbW5ynEDXPnA'],
  }),
  created_at: Timestamp,
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
    answer: pagedList('SshKeyList', SshKey),
  },
  sshKeyCreate: {
    method: 'POST',
    path: '/v0.1/projects/{project_id}/ssh-keys',
    tag: 'VMs',
    summary: 'Register an SSH key',
    description:
      'A VM creation can name it by its id. VMs keep the keys that they were created with, whatever becomes of the registered one. At most 1,000 in a project.',
    access: 'member',
    worksUnpaid: true,
    body: body('SshKeyCreate', { name: DisplayName, public_key: SshPublicKey }),
    answer: SshKey,
    errors: ['already_exists', 'quota_exceeded'],
  },
  sshKeyDelete: {
    method: 'DELETE',
    path: '/v0.1/projects/{project_id}/ssh-keys/{ssh_key_id}',
    tag: 'VMs',
    summary: 'Remove an SSH key',
    access: 'member',
    worksUnpaid: true,
    answer: Empty,
  },
})
