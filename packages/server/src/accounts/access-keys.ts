import { type EventType, type Role, roles } from '@slipway/contract'
import { isAddressBlock } from '../domain/address-blocks.ts'
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
import { createAccessKey } from './credentials.ts'
import { endInvitationsOfKeys } from './invitations.ts'

export interface KeyRequest {
  name: string
  expires_at?: string
  allowed_cidrs?: string[]
}

/** Creates a key of a project, with the rights of a member or a viewer. The secret is not stored. */
export const createProjectKey = (
  tx: Tx,
  by: ProjectRequester,
  maker: string | null,
  request: KeyRequest & { role: 'read' | 'write' },
) => createKey(tx, by, { projectId: by.projectId, organizationId: null }, maker, request.role, request)

/** Creates a key for all projects of an organization. It cannot have more rights than its creator. */
export function createOrganizationKey(
  tx: Tx,
  by: OrganizationRequester,
  maker: string | null,
  makerRole: Role,
  request: KeyRequest & { role: Role },
) {
  if (roles.indexOf(request.role) > roles.indexOf(makerRole))
    throw new Failure(
      'permission_denied',
      `A key cannot have a higher role than its creator. Your role is ${makerRole}.`,
    )
  const scope = { projectId: null, organizationId: by.organizationId }
  return createKey(tx, by, scope, maker, request.role, request)
}

export const createOperatorKey = (tx: Tx, by: Requester, maker: string | null, request: KeyRequest) =>
  createKey(tx, by, operatorScope, maker, 'write', request)

async function createKey(
  tx: Tx,
  by: Requester,
  scope: KeyScope,
  createdBy: string | null,
  role: KeyRole,
  { name, expires_at, allowed_cidrs: allowedCidrs = [] }: KeyRequest,
): Promise<{ row: AccessKeyRow; secret: string }> {
  const expiresAt = expires_at === undefined ? null : new Date(expires_at)
  if (expiresAt && Number.isNaN(expiresAt.getTime()))
    throw invalidField('expires_at', 'is not a valid time; expected, for example, 2026-12-31T00:00:00Z')
  for (const [i, block] of allowedCidrs.entries())
    if (!isAddressBlock(block))
      throw invalidField(
        `allowed_cidrs/${i}`,
        'must be an address or a CIDR block, such as 10.0.0.0/8 or fd00::/8',
      )
  const key = await createAccessKey(tx, { scope, name, role, createdBy, expiresAt, allowedCidrs })
  if (!key) throw invalidField('expires_at', 'must be in the future')
  if (scope !== operatorScope) await requireOrganizationQuota(tx, by, 'access_keys')
  await emitKey(tx, by, 'access_key.created', key.row)
  return key
}

export async function revokeKey(tx: Tx, by: Requester, scope: KeyScope, id: string): Promise<void> {
  await emitKeysRevoked(tx, by, [requireFound('access key', await revokeAccessKey(tx, scope, id))])
}

/** Emits an event for each revoked key, ends the invitations that the keys made, and tells all processes. */
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
