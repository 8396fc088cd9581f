import type { EventType } from '@slipway/contract'
import type { Tx } from '../store/database.ts'
import { emit } from '../store/events/events.ts'
import { invalidGrant } from './passwords.ts'

/** A request without a credential, or about one's own. */
export interface Visitor {
  requestId: string
  /** Where the request comes from, by the rules of trusted proxies. */
  address: string
  /** What the client calls itself. */
  userAgent: string
}

export const badCode = () => invalidGrant('The code is unknown, used or expired.')

/** There is no caller yet: the user whom it is about is the actor. */
export const emitUser = (
  tx: Tx,
  { requestId }: Pick<Visitor, 'requestId'>,
  type: EventType,
  userId: string,
  more: { organizationId?: string | null; data?: Record<string, unknown> } = {},
): Promise<void> =>
  emit(tx, { type, resourceType: 'user', resourceId: userId, actor: `user:${userId}`, requestId, ...more })
