import type { EventType } from '@slipway/contract'
import { type Card, hasExpired, paysWhenCharged } from '../domain/cards.ts'
import { Failure } from '../domain/failure.ts'
import type { Queryable, Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { listDueInvoices, markInvoicesPaid } from '../store/billing/invoices.ts'
import {
  countRunning,
  deletePaymentMethod,
  findPaymentMethod,
  listExpiredCards,
  putPaymentMethod,
  setPaymentCustomer,
  setPaymentState,
} from '../store/billing/payments.ts'
import { usageState } from '../store/billing/usage-days.ts'
import { emit, system } from '../store/events/events.ts'
import { findOrganization, lockOrganization, type OrganizationRow } from '../store/identity/organizations.ts'

/** Who changes how an organization pays. */
export interface Payer {
  organizationId: string
  actor: string
  requestId: string
  clientAddress: string
}

export const systemPayer = (organizationId: string): Payer => ({ ...system, organizationId })

/** Puts a card where no payment method is active; 409 where one is. */
export async function addCard(tx: Tx, by: Payer, card: Card): Promise<void> {
  await lockOrganization(tx, by.organizationId)
  await requireNoActiveMethod(tx, by.organizationId)
  await setCard(tx, by, card)
}

export async function requireNoActiveMethod(db: Queryable, organizationId: string): Promise<void> {
  if ((await findOrganization(db, organizationId))?.payment_state === 'active')
    throw new Failure('conflict', 'A payment method is active already: only an owner replaces it.')
}

/** Puts a card in the place of whatever was there; what is due is charged to it at once. */
export async function setCard(tx: Tx, by: Payer, card: Card): Promise<void> {
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
  await tell(tx, by, 'organization.payment_method_set', { brand: card.brand, last4: card.last4 })
  await changePaymentState(tx, by, 'active')
  await chargeDue(tx, by)
}

/** Only when nothing runs that it would have to pay for. */
export async function removeCard(tx: Tx, by: Payer): Promise<void> {
  await lockOrganization(tx, by.organizationId)
  await requireNothingRuns(tx, by.organizationId)
  if ((await deletePaymentMethod(tx, by.organizationId)) === 0) return
  await tell(tx, by, 'organization.payment_method_removed')
  await changePaymentState(tx, by, 'removed')
}

export async function requireNothingRuns(tx: Tx, organizationId: string): Promise<void> {
  const { vms, disks } = await countRunning(tx, organizationId)
  if (vms + disks > 0)
    throw new Failure(
      'conflict',
      `The last payment method stays while something costs money: ${vms} VMs that are not shut off, ${disks} disks.`,
    )
}

/** The gate follows at once in all processes. */
export async function changePaymentState(
  tx: Tx,
  by: Payer,
  state: OrganizationRow['payment_state'],
  reason = '',
): Promise<void> {
  if (!(await setPaymentState(tx, by.organizationId, state))) return
  await tell(tx, by, `organization.payment_${state}`, reason === '' ? {} : { reason })
  tx.signal('access')
}

/** The built-in provider's charge: invoices that are due are paid, or the card is declined. */
export async function chargeDue(tx: Tx, by: Payer): Promise<void> {
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
    await tell(tx, by, 'invoice.paid', { invoice_id: id })
}

/** Cards that reached the end of their last month. */
export async function expireCards({ database }: Services): Promise<void> {
  for (const organizationId of await listExpiredCards(database))
    await database.transaction((tx) =>
      changePaymentState(tx, systemPayer(organizationId), 'declined', 'the card has expired'),
    )
}

export async function tell(
  tx: Tx,
  by: Payer,
  type: EventType,
  data: Record<string, unknown> = {},
): Promise<void> {
  await emit(tx, {
    type,
    resourceType: 'organization',
    resourceId: by.organizationId,
    organizationId: by.organizationId,
    actor: by.actor,
    requestId: by.requestId,
    clientAddress: by.clientAddress,
    data,
  })
}
