import { type Role, roles } from '@slipway/contract'
import type { Tx } from '../postgres/database.ts'
import type { OrganizationRequester } from '../store/events/events.ts'
import {
  type AccessKeyRow,
  listProjectKeysOfUser,
  revokeOrganizationKeysOfUser,
  revokeProjectKeysOfUser,
} from '../store/identity/access-keys.ts'
import { emitKeysRevoked } from './access-keys.ts'
import { endInvitationsOfUser } from './invitations.ts'

/**
 * Ends the open invitations that the member may no longer make, and revokes the member's organization keys with a
 * role above `remainingRole`, or all of them if there is none. If `isRevokingProjectKeys`, also revokes the member's
 * project keys. Must be called after every removal and demotion. Returns the project keys that still work.
 */
export async function endGrantsOfMember(
  tx: Tx,
  by: OrganizationRequester,
  userId: string,
  remainingRole: Role | undefined,
  isRevokingProjectKeys: boolean,
): Promise<AccessKeyRow[]> {
  const { organizationId } = by
  const kept = remainingRole ? roles.slice(0, roles.indexOf(remainingRole) + 1) : []
  await emitKeysRevoked(tx, by, await revokeOrganizationKeysOfUser(tx, organizationId, userId, kept))
  await endInvitationsOfUser(tx, by, userId)
  if (isRevokingProjectKeys)
    await emitKeysRevoked(tx, by, await revokeProjectKeysOfUser(tx, organizationId, userId))
  return listProjectKeysOfUser(tx, organizationId, userId)
}
