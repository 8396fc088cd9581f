import type { EventType } from '@slipway/contract'
import { invalidField, notFound } from '../domain/failure.ts'
import { type ProjectRequester, requireRoom } from '../operations/admission.ts'
import type { Tx } from '../store/database.ts'
import { emit } from '../store/events/events.ts'
import { type AccessKeyRow, revokeAccessKey } from '../store/identity/access-keys.ts'
import { accessKeyView } from '../views/identity.ts'
import { createAccessKey } from './credentials.ts'

export interface NewProjectKey {
  name: string
  role: 'read' | 'write'
  expires_at?: string
}

/** A key of a project. Its secret is returned here and nowhere else. */
export async function createProjectKey(
  tx: Tx,
  by: ProjectRequester,
  { name, role, expires_at }: NewProjectKey,
): Promise<{ row: AccessKeyRow; secret: string }> {
  const expiresAt = expires_at === undefined ? null : new Date(expires_at)
  if (expiresAt && Number.isNaN(expiresAt.getTime()))
    throw invalidField('expires_at', 'is not a point in time')
  const key = await createAccessKey(tx, { kind: 'project', projectId: by.projectId, name, role, expiresAt })
  if (!key) throw invalidField('expires_at', 'must be in the future')
  await requireRoom(tx, by, 'access_keys')
  await emitKey(tx, by, 'access_key.created', key.row)
  return key
}

/** In every process at once. */
export async function revokeProjectKey(tx: Tx, by: ProjectRequester, id: string): Promise<void> {
  const row = await revokeAccessKey(tx, by.projectId, id)
  if (!row) throw notFound('access key')
  await emitKey(tx, by, 'access_key.revoked', row)
  tx.signal('access')
}

const emitKey = (tx: Tx, by: ProjectRequester, type: EventType, row: AccessKeyRow): Promise<void> =>
  emit(tx, { ...by, type, resourceType: 'access_key', resourceId: row.id, data: accessKeyView(row) })
