import type { EventType } from '@slipway/contract'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { emit } from '../store/events/events.ts'
import { listMembershipsOf } from '../store/identity/identities.ts'
import type { Visitor } from './visitor.ts'

/**
 * Puts a failed sign-in on record. That happens after the answer, which takes the same time for every address. Of an
 * unknown address nothing but the caller's own is written: people mistake the field for that of the password.
 */
export function tellFailedSignIn(
  { database, log }: Services,
  visitor: Visitor,
  user: { id: string } | undefined,
  reason: 'password' | 'second_factor',
): void {
  database
    .transaction((tx) => tellOrganizations(tx, visitor, 'user.sign_in_failed', user?.id, { reason }))
    .catch((error) => log.warn({ err: error, client: visitor.address }, 'failed sign-in not put on record'))
}

/** Tells every organization of the user, each by an event of its own; nobody's and strangers' go to operators alone. */
export async function tellOrganizations(
  tx: Tx,
  visitor: Visitor,
  type: EventType,
  userId: string | undefined,
  data: Record<string, unknown>,
): Promise<void> {
  const memberships = userId ? await listMembershipsOf(tx, userId) : []
  const organizationIds = memberships.map(({ organization_id }) => organization_id)
  for (const organizationId of organizationIds.length > 0 ? organizationIds : [null])
    await emit(tx, {
      type,
      resourceType: 'user',
      resourceId: userId ?? '',
      organizationId,
      // Whoever it was has not shown to be the user.
      actor: '',
      requestId: visitor.requestId,
      clientAddress: visitor.address,
      data,
    })
}
