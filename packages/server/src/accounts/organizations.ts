import type { EventType, OrganizationQuotaName } from '@slipway/contract'
import { Failure, invalidField, requireFound } from '../domain/failure.ts'
import { uuid } from '../domain/ids.ts'
import type { Tx } from '../postgres/database.ts'
import { setOrganizationQuotas } from '../store/compute/organization-quotas.ts'
import { emit, type OrganizationRequester, type Requester } from '../store/events/events.ts'
import {
  changeOrganization,
  insertOrganization,
  lockOrganization,
  type OrganizationRow,
  setAlertEmails,
  suspendOrganization,
} from '../store/identity/organizations.ts'
import { requireEmail } from './invitations.ts'

export async function createOrganization(
  tx: Tx,
  by: Requester,
  name: string,
  quotas: Record<OrganizationQuotaName, number>,
): Promise<OrganizationRow> {
  const row = await insertOrganization(tx, uuid(), name)
  await setOrganizationQuotas(tx, row.id, quotas)
  await emitOrganization(tx, by, 'organization.created', row)
  return row
}

export async function updateOrganization(
  tx: Tx,
  by: OrganizationRequester,
  given: { name?: string; require_totp?: boolean },
  reservedNames: string[],
): Promise<OrganizationRow> {
  // Single sign-on finds its organization by name, so no other organization may take a name that the
  // configuration uses.
  const current = await lockOrganization(tx, by.organizationId)
  if (given.name !== undefined && given.name !== current?.name && reservedNames.includes(given.name))
    throw new Failure(
      'already_exists',
      `The name ${given.name} is reserved for single sign-on. Choose another name.`,
    )
  const changes = { name: given.name ?? null, requiresTotp: given.require_totp ?? null }
  const row = requireFound('organization', await changeOrganization(tx, by.organizationId, changes))
  await emitOrganization(tx, by, 'organization.updated', row, { require_totp: row.require_totp })
  tx.signal('access')
  return row
}

/** Sets the addresses that also get the e-mails for owners and admins. */
export async function setAlertRecipients(
  tx: Tx,
  by: OrganizationRequester,
  given: string[],
): Promise<string[]> {
  const emails = [...new Set(given.map((email, i) => requireEmail(email, `emails/${i}`)))]
  await setAlertEmails(tx, by.organizationId, emails)
  await emit(tx, {
    ...by,
    type: 'organization.alert_recipients_set',
    resourceType: 'organization',
    resourceId: by.organizationId,
    data: { emails },
  })
  return emails
}

export async function setOrganizationSuspended(
  tx: Tx,
  by: Requester,
  id: string,
  given: { suspended: boolean; stop_vms?: boolean },
): Promise<OrganizationRow> {
  const stopsVms = given.stop_vms ?? false
  if (stopsVms && !given.suspended)
    throw invalidField('stop_vms', 'is only allowed together with suspended: true')
  const row = requireFound('organization', await suspendOrganization(tx, id, given.suspended, stopsVms))
  const type = given.suspended ? 'organization.suspended' : 'organization.restored'
  await emitOrganization(tx, by, type, row, { stop_vms: stopsVms })
  tx.signal('access')
  return row
}

const emitOrganization = (
  tx: Tx,
  by: Requester,
  type: EventType,
  row: OrganizationRow,
  more: Record<string, unknown> = {},
): Promise<void> =>
  emit(tx, {
    ...by,
    type,
    resourceType: 'organization',
    resourceId: row.id,
    organizationId: row.id,
    data: { name: row.name, ...more },
  })
