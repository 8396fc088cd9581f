import type { EventType } from '@slipway/contract'
import { Failure } from '../domain/failure.ts'
import type { Tx } from '../postgres/database.ts'
import { emit } from '../store/events/events.ts'

/** A request without a credential, or about one's own. */
export interface Visitor {
  requestId: string
  /** Where the request comes from, by the rules of trusted proxies. */
  address: string
  /** What the client calls itself. */
  userAgent: string
}

/** Also says it in the words of OAuth 2, which its clients look for. */
export const invalidGrant = (message: string, description = message): Failure =>
  new Failure('invalid_grant', message, {
    extra: { error: 'invalid_grant', error_description: description },
  })

export const badCode = () => invalidGrant('The code is unknown, used or expired.')

/** There is no caller yet: the user whom it is about is the actor. */
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
