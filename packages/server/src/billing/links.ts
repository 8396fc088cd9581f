import { Failure } from '../domain/failure.ts'
import { hashSecret, newToken } from '../domain/secret.ts'
import type { Tx } from '../postgres/database.ts'
import { insertBillingSession, type NewBillingSession } from '../store/billing/sessions.ts'
import { emit, type Requester } from '../store/events/events.ts'
import type { Caller } from '../store/identity/access.ts'

/** The token of a temporary link to an organization's billing dashboard. */
export async function createBillingLink(
  tx: Tx,
  by: Requester & { organizationId: string },
  caller: Caller,
  { keysMayOpen }: { keysMayOpen: boolean },
): Promise<string> {
  if (caller.kind === 'access_key' && caller.projectId !== null && !keysMayOpen)
    throw new Failure('permission_denied', 'The operator lets only owners open billing: ask one of them.')
  const token = newToken('billing')
  await insertBillingSession(tx, {
    tokenHash: hashSecret(token),
    organizationId: by.organizationId,
    ...askedBy(caller),
  })
  await emit(tx, {
    ...by,
    type: 'organization.billing_link_created',
    resourceType: 'organization',
    resourceId: by.organizationId,
    data: caller.kind === 'access_key' && caller.projectId ? { project_id: caller.projectId } : {},
  })
  return token
}

function askedBy(caller: Caller): Omit<NewBillingSession, 'tokenHash' | 'organizationId'> {
  const nobody = { projectId: null, userId: null, tokenFamilyId: null, accessKeyId: null }
  switch (caller.kind) {
    case 'user':
      return { ...nobody, userId: caller.id, tokenFamilyId: caller.familyId }
    case 'access_key':
      return { ...nobody, accessKeyId: caller.id, projectId: caller.projectId }
    case 'operator_key':
      throw new Error('an operator key has no organization')
  }
}
