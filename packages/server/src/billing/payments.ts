import type { EventType } from '@slipway/contract'
import { type Card, hasExpired, paysWhenCharged } from '../domain/cards.ts'
import { Failure } from '../domain/failure.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { listDueInvoices, markInvoicesPaid } from '../store/billing/invoices.ts'
import {
  countBilled,
  deletePaymentMethod,
  findPaymentMethod,
  listExpiredCards,
  putPaymentMethod,
  setPaymentCustomer,
  setPaymentState,
} from '../store/billing/payments.ts'
import { usageState } from '../store/billing/usage-days.ts'
import { emit, type OrganizationRequester, system } from '../store/events/events.ts'
import { findOrganization, lockOrganization, type OrganizationRow } from '../store/identity/organizations.ts'

export const systemOf = (organizationId: string): OrganizationRequester => ({ ...system, organizationId })

/** Adds a card; throws a 409 error if a payment method is active. */
export async function addCard(tx: Tx, by: OrganizationRequester, card: Card): Promise<void> {
  await lockOrganization(tx, by.organizationId)
  await requireNoActiveMethod(tx, by.organizationId)
  await setCard(tx, by, card)
}

export async function requireNoActiveMethod(db: Queryable, organizationId: string): Promise<void> {
  if ((await findOrganization(db, organizationId))?.payment_state === 'active')
    throw new Failure('conflict', 'A payment method is already active. Only an owner can replace it.')
}

/** Replaces the payment method with a card, and charges unpaid invoices to it. */
export async function setCard(tx: Tx, by: OrganizationRequester, card: Card): Promise<void> {
  await lockOrganization(tx, by.organizationId)
  await putPaymentMethod(tx, {
    organization_id: by.organizationId,
    provider: 'builtin',
    reference: card.reference,
    brand: card.brand,
    last4: card.last4,
    expires_month: card.expiresMonth,
    expires_year: card.expiresYear,
  })
  await setPaymentCustomer(tx, by.organizationId, `builtin_${by.organizationId}`)
  await emitBilling(tx, by, 'organization.payment_method_set', { brand: card.brand, last4: card.last4 })
  await changePaymentState(tx, by, 'active')
  await chargeDue(tx, by)
}

/** Removes the payment method; throws a 409 error if VMs are not stopped or disks exist. */
export async function removeCard(tx: Tx, by: OrganizationRequester): Promise<void> {
  await lockOrganization(tx, by.organizationId)
  await requireNothingBilled(tx, by.organizationId)
  if ((await deletePaymentMethod(tx, by.organizationId)) === 0) return
  await emitBilling(tx, by, 'organization.payment_method_removed')
  await changePaymentState(tx, by, 'removed')
}

export async function requireNothingBilled(tx: Tx, organizationId: string): Promise<void> {
  const { vms, disks } = await countBilled(tx, organizationId)
  if (vms + disks > 0)
    throw new Failure(
      'conflict',
      `The payment method cannot be removed while VMs are running or disks exist (VMs not stopped: ${vms}, disks: ${disks}). Stop the VMs and delete the disks first.`,
    )
}

/** Changes the payment state, and signals all processes to apply it immediately. */
export async function changePaymentState(
  tx: Tx,
  by: OrganizationRequester,
  state: OrganizationRow['payment_state'],
  reason = '',
): Promise<void> {
  if (!(await setPaymentState(tx, by.organizationId, state))) return
  await emitBilling(tx, by, `organization.payment_${state}`, reason === '' ? {} : { reason })
  tx.signal('access')
}

/** Charges unpaid invoices to the built-in provider's card. Either all are paid, or the card is declined. */
export async function chargeDue(tx: Tx, by: OrganizationRequester): Promise<void> {
  const due = await listDueInvoices(tx, by.organizationId)
  const newest = due.at(-1)
  const method = await findPaymentMethod(tx, by.organizationId)
  if (!newest || method?.provider !== 'builtin') return
  const { today } = await usageState(tx)
  const card = { expiresMonth: method.expires_month, expiresYear: method.expires_year }
  if (hasExpired(card, today)) return changePaymentState(tx, by, 'declined', 'the card has expired')
  if (!paysWhenCharged(method.reference))
    return changePaymentState(tx, by, 'declined', 'the card was declined')
  for (const id of await markInvoicesPaid(tx, by.organizationId, newest.month))
    await emitBilling(tx, by, 'invoice.paid', { invoice_id: id })
}

/** Marks cards as declined after their expiry month has ended. */
export async function expireCards({ database }: Services): Promise<void> {
  for (const organizationId of await listExpiredCards(database))
    await database.transaction((tx) =>
      changePaymentState(tx, systemOf(organizationId), 'declined', 'the card has expired'),
    )
}

export const emitBilling = (
  tx: Tx,
  by: OrganizationRequester,
  type: EventType,
  data: Record<string, unknown> = {},
): Promise<void> =>
  emit(tx, { ...by, type, resourceType: 'organization', resourceId: by.organizationId, data })
