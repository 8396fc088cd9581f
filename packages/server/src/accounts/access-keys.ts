import { type EventType, type Role, roles } from '@slipway/contract'
import { Failure, invalidField, requireFound } from '../domain/failure.ts'
import { type ProjectRequester, requireOrganizationQuota } from '../operations/admission.ts'
import type { Tx } from '../postgres/database.ts'
import { emit, type OrganizationRequester, type Requester } from '../store/events/events.ts'
import {
  type AccessKeyRow,
  type KeyRole,
  type KeyScope,
  operatorScope,
  revokeAccessKey,
} from '../store/identity/access-keys.ts'
import { accessKeyView } from '../views/identity.ts'
import { type KeyCreator, type KeyRequest, limitsOf, lockParent, revokeDescendants } from './child-keys.ts'
import { createAccessKey } from './credentials.ts'
import { endInvitationsOfKeys } from './invitations.ts'

/**
 * Creates a key of a project, with the rights of a member or a viewer. A signing key is stored encrypted;
 * other keys are stored only as a hash.
 */
export const createProjectKey = (
  tx: Tx,
  by: ProjectRequester,
  creator: KeyCreator,
  request: KeyRequest & { role: 'read' | 'write' },
) => createKey(tx, by, { projectId: by.projectId, organizationId: null }, creator, request.role, request)

/** Creates a key for all projects of an organization. It cannot have more rights than its creator. */
export function createOrganizationKey(
  tx: Tx,
  by: OrganizationRequester,
  creator: KeyCreator,
  creatorRole: Role,
  request: KeyRequest & { role: Role },
) {
  if (isAbove(request.role, creatorRole))
    throw creator.keyId === null
      ? new Failure(
          'permission_denied',
          `A key cannot have a higher role than its creator. Your role is ${creatorRole}.`,
        )
      : invalidField(
          'role',
          `must not be higher than ${creatorRole}, the role of the key that sent this request`,
        )
  const scope = { projectId: null, organizationId: by.organizationId }
  return createKey(tx, by, scope, creator, request.role, request)
}

export const createOperatorKey = (tx: Tx, by: Requester, creator: KeyCreator, request: KeyRequest) =>
  createKey(tx, by, operatorScope, creator, 'write', request)

async function createKey(
  tx: Tx,
  by: Requester,
  scope: KeyScope,
  creator: KeyCreator,
  role: KeyRole,
  request: KeyRequest,
): Promise<{ row: AccessKeyRow; secret: string }> {
  const limits = limitsOf(await lockParent(tx, creator), request)
  const { name, sealedWith } = request
  const created = { createdBy: creator.userId, parentId: creator.keyId }
  const key = await createAccessKey(tx, { scope, name, role, ...created, ...limits, sealedWith })
  if (!key) throw invalidField('expires_at', 'must be in the future')
  if (scope !== operatorScope) await requireOrganizationQuota(tx, by, 'access_keys')
  await emitKey(tx, by, 'access_key.created', key.row)
  return key
}

interface Revocation {
  /** The caller's role in the organization. A request to revoke a key with a higher role is refused. */
  callerRole?: Role
  isRevokingDescendants?: boolean | undefined
}

/** Returns the ids of the descendants that were revoked with the key. */
export async function revokeKey(
  tx: Tx,
  by: Requester,
  scope: KeyScope,
  id: string,
  { callerRole, isRevokingDescendants = true }: Revocation,
): Promise<string[]> {
  const row = requireFound('access key', await revokeAccessKey(tx, scope, id))
  // The error rolls back the transaction.
  if (callerRole && isAbove(row.role as Role, callerRole))
    throw new Failure(
      'permission_denied',
      `You cannot revoke a key with a higher role than your own. Its role is ${row.role}, yours is ${callerRole}.`,
    )
  const descendants = isRevokingDescendants ? await revokeDescendants(tx, id) : []
  await emitKeysRevoked(tx, by, [row, ...descendants])
  return descendants.map((each) => each.id)
}

const isAbove = (role: Role, limit: Role): boolean => roles.indexOf(role) > roles.indexOf(limit)

/** Emits an event for each revoked key, ends the invitations that were made with the keys, and signals all processes. */
export async function emitKeysRevoked(tx: Tx, by: Requester, rows: AccessKeyRow[]): Promise<void> {
  for (const row of rows) await emitKey(tx, by, 'access_key.revoked', row)
  const ids = rows.map(({ id }) => id)
  if (ids.length > 0) await endInvitationsOfKeys(tx, by, ids)
  tx.signal('access')
}

const emitKey = (tx: Tx, by: Requester, type: EventType, row: AccessKeyRow): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    projectId: row.project_id,
    resourceType: 'access_key',
    resourceId: row.id,
    data: accessKeyView(row),
  })
