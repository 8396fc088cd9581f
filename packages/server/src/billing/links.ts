import { Failure } from '../domain/failure.ts'
import { hashSecret, newToken } from '../domain/secret.ts'
import type { Tx } from '../postgres/database.ts'
import { insertBillingSession } from '../store/billing/sessions.ts'
import { emit, type OrganizationRequester } from '../store/events/events.ts'
import type { Caller } from '../store/identity/access.ts'

/** Creates a temporary link to an organization's billing dashboard, and returns the token of the link. */
export async function createBillingLink(
  tx: Tx,
  by: OrganizationRequester,
  caller: Caller,
  { keysMayOpen }: { keysMayOpen: boolean },
): Promise<string> {
  if (caller.kind === 'operator_key') throw new Error('an operator key has no organization')
  const projectId = caller.kind === 'access_key' ? caller.projectId : null
  if (projectId && !keysMayOpen)
    throw new Failure(
      'permission_denied',
      'On this service, only owners can open the billing dashboard. Ask an owner.',
    )
  const token = newToken('billing')
  await insertBillingSession(tx, {
    tokenHash: hashSecret(token),
    organizationId: by.organizationId,
    projectId,
    userId: caller.kind === 'user' ? caller.id : null,
    tokenFamilyId: caller.kind === 'user' ? caller.familyId : null,
    accessKeyId: caller.kind === 'access_key' ? caller.id : null,
  })
  await emit(tx, {
    ...by,
    type: 'organization.billing_link_created',
    resourceType: 'organization',
    resourceId: by.organizationId,
    data: projectId ? { project_id: projectId } : {},
  })
  return token
}
