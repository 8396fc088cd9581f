import type { EventType } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import type { Tx } from '../postgres/database.ts'
import { emit } from '../store/events/events.ts'

/** The origin of a request before sign-in, or of a request by a user about their own account. */
export interface Visitor {
  requestId: string
  address: string
  userAgent: string
}

/** Adds the fields of OAuth 2 errors, which OAuth clients read. */
export const invalidGrant = (message: string, description = message): Failure =>
  new Failure('invalid_grant', message, {
    extra: { error: 'invalid_grant', error_description: description },
  })

export const badCode = () => invalidGrant('The code is unknown, used or expired.')

/** Emits an event with the user as the actor, because before sign-in there is no caller. */
export const emitUser = (
  tx: Tx,
  { requestId, address }: Pick<Visitor, 'requestId' | 'address'>,
  type: EventType,
  userId: string,
  more: { organizationId?: string | null; data?: Record<string, unknown> } = {},
): Promise<void> =>
  emit(tx, {
    type,
    resourceType: 'user',
    resourceId: userId,
    actor: `user:${userId}`,
    requestId,
    clientAddress: address,
    ...more,
  })
