import { createHash } from 'node:crypto'
import type { EventType } from '@slipway/contract'
import { Failure, requireFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import { type ProjectRequester, requireOrganizationQuota } from '../operations/admission.ts'
import { type Tx, violatedConstraint } from '../postgres/database.ts'
import { deleteSshKey, insertSshKey, type SshKeyRow } from '../store/compute/ssh-keys.ts'
import { emit } from '../store/events/events.ts'
import { sshKeyView } from '../views/identity.ts'

/** The request schema has already checked the format of the key. */
export async function createSshKey(
  tx: Tx,
  by: ProjectRequester,
  { name, public_key }: { name: string; public_key: string },
): Promise<SshKeyRow> {
  const [type = '', data = ''] = public_key.split(/\s/)
  const digest = createHash('sha256').update(Buffer.from(data, 'base64')).digest('base64')
  const row = await insertSshKey(tx, {
    id: uuid(),
    projectId: by.projectId,
    name,
    publicKey: public_key,
    type,
    fingerprint: `SHA256:${digest.replace(/=+$/, '')}`,
  }).catch((error) => {
    throw violatedConstraint(error) === 'ssh_keys_project_id_name_key'
      ? new Failure('already_exists', `There is already an SSH key named ${name}. Choose another name.`)
      : error
  })
  await requireOrganizationQuota(tx, by, 'ssh_keys')
  await emitSshKey(tx, by, 'ssh_key.created', row)
  return row
}

/** Existing VMs keep the key. */
export async function removeSshKey(tx: Tx, by: ProjectRequester, id: string): Promise<void> {
  const row = requireFound('SSH key', await deleteSshKey(tx, by.projectId, id))
  await emitSshKey(tx, by, 'ssh_key.deleted', row)
}

const emitSshKey = (tx: Tx, by: ProjectRequester, type: EventType, row: SshKeyRow): Promise<void> =>
  emit(tx, { ...by, type, resourceType: 'ssh_key', resourceId: row.id, data: sshKeyView(row) })
