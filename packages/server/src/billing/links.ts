import { hashSecret, newToken } from '../domain/secret.ts'
import { insertBillingSession } from '../store/billing/sessions.ts'
import type { Tx } from '../store/database.ts'
import { emit, type Requester } from '../store/events/events.ts'

/** The token of a temporary link to an organization's billing dashboard. */
export async function createBillingLink(
  tx: Tx,
  by: Requester & { organizationId: string },
  callerId: string,
): Promise<string> {
  const token = newToken('billing')
  await insertBillingSession(tx, hashSecret(token), by.organizationId, callerId)
  await emit(tx, {
    ...by,
    type: 'organization.billing_link_created',
    resourceType: 'organization',
    resourceId: by.organizationId,
  })
  return token
}
