import type { EventType } from '@slipway/contract'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { emit } from '../store/events/events.ts'
import { listMembershipsOf } from '../store/identity/identities.ts'
import type { Visitor } from './visitor.ts'

/**
 * Records a failed sign-in without delaying the response, so that the response time is the same for every
 * e-mail address. An unknown address is not recorded, because people sometimes type their password into that
 * field by mistake.
 */
export function recordFailedSignIn(
  { database, log }: Services,
  visitor: Visitor,
  user: { id: string } | undefined,
  reason: 'password' | 'second_factor',
): void {
  database
    .transaction((tx) => emitToOrganizations(tx, visitor, 'user.sign_in_failed', user?.id, { reason }))
    .catch((error) => log.warn({ err: error, client: visitor.address }, 'failed sign-in not recorded'))
}

/** Emits the event once for each organization of the user. If the user has none, only operators see the event. */
export async function emitToOrganizations(
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
      // It is not proven that the user made this request.
      actor: '',
      requestId: visitor.requestId,
      clientAddress: visitor.address,
      data,
    })
}
