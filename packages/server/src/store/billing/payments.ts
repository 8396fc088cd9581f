import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import type { OrganizationRow } from '../identity/organizations.ts'

export interface PaymentMethodRow {
  organization_id: string
  provider: 'builtin' | 'stripe'
  reference: string
  brand: string
  last4: string
  expires_month: number
  expires_year: number
}

export const findPaymentMethod = statement<PaymentMethodRow, { organizationId: string }>(
  'payment_method_find',
  'SELECT * FROM payment_methods WHERE organization_id = :organizationId',
).oneBy('organizationId')

export const putPaymentMethod = statement<never, PaymentMethodRow, Tx>(
  'payment_method_put',
  `INSERT INTO payment_methods (organization_id, provider, reference, brand, last4, expires_month, expires_year)
   VALUES (:organization_id, :provider, :reference, :brand, :last4, :expires_month, :expires_year)
   ON CONFLICT (organization_id) DO UPDATE SET provider = excluded.provider, reference = excluded.reference,
     brand = excluded.brand, last4 = excluded.last4, expires_month = excluded.expires_month,
     expires_year = excluded.expires_year, created_at = slipway_now()`,
).run

export const deletePaymentMethod = statement<never, { organizationId: string }, Tx>(
  'payment_method_delete',
  'DELETE FROM payment_methods WHERE organization_id = :organizationId',
).runBy('organizationId')

const setState = statement<never, { organizationId: string; state: string }>(
  'payment_state_set',
  `UPDATE organizations SET payment_state = :state, payment_state_since = slipway_now()
   WHERE id = :organizationId AND payment_state <> :state`,
)

/** Does not change an id that is already set. */
export const setPaymentCustomer = statement<never, { organizationId: string; customerId: string }, Tx>(
  'payment_customer_set',
  `UPDATE organizations SET payment_customer_id = :customerId WHERE id = :organizationId AND payment_customer_id = ''`,
).runBy('organizationId', 'customerId')

// Keeps an existing customer id of Stripe (`cus_…`); replaces the id of another provider.
const adoptCustomer = statement<
  { payment_customer_id: string },
  { organizationId: string; customerId: string }
>(
  'payment_customer_adopt',
  `UPDATE organizations
   SET payment_customer_id =
         CASE WHEN starts_with(payment_customer_id, 'cus_') THEN payment_customer_id ELSE :customerId END
   WHERE id = :organizationId RETURNING payment_customer_id`,
)

export const findOrganizationOfCustomer = statement<OrganizationRow, { customerId: string }>(
  'organization_by_customer',
  `SELECT * FROM organizations WHERE payment_customer_id = :customerId AND starts_with(:customerId, 'cus_')`,
).oneBy('customerId')

// Reads from the provider are numbered when they start, and applied only in that order.
const beginSync = statement<{ begun: number }, { organizationId: string }>(
  'provider_sync_begin',
  `INSERT INTO provider_syncs (organization_id, begun) VALUES (:organizationId, 1)
   ON CONFLICT (organization_id) DO UPDATE SET begun = provider_syncs.begun + 1 RETURNING begun`,
)
const applySync = statement<never, { organizationId: string; ticket: number }>(
  'provider_sync_apply',
  'UPDATE provider_syncs SET applied = :ticket WHERE organization_id = :organizationId AND applied < :ticket',
)

const knowsEvent = statement<{ is_known: boolean }, { id: string }>(
  'provider_event_known',
  'SELECT EXISTS (SELECT FROM provider_events WHERE id = :id) AS is_known',
)

// Counts the VMs that are not stopped, and the data disks. They cost money, so they need a payment method.
const billed = statement<{ vms: number; disks: number }, { organizationId: string }>(
  'payment_running',
  `SELECT (SELECT count(*) FROM vms v JOIN projects p ON p.id = v.project_id
           WHERE p.organization_id = :organizationId AND v.state <> 'STATE_SHUTOFF') AS vms,
          (SELECT count(*) FROM disks d JOIN projects p ON p.id = d.project_id
           WHERE p.organization_id = :organizationId) AS disks`,
)

// A card is valid until the end of its month.
const expired = statement<{ organization_id: string }>(
  'payment_method_expired',
  `SELECT m.organization_id FROM payment_methods m JOIN organizations o ON o.id = m.organization_id
   WHERE m.provider = 'builtin' AND o.payment_state = 'active'
     AND make_date(m.expires_year, m.expires_month, 1) + interval '1 month' <= slipway_now() AT TIME ZONE 'UTC'`,
)

export const rememberProviderEvent = statement<never, { id: string }>(
  'provider_event_remember',
  'INSERT INTO provider_events (id) VALUES (:id) ON CONFLICT DO NOTHING',
).runBy('id')

export const pruneProviderEvents = statement(
  'provider_event_prune',
  `DELETE FROM provider_events WHERE received_at < slipway_now() - interval '60 days'`,
).runBy()

/** Returns whether the state changed. */
export const setPaymentState = async (
  tx: Tx,
  organizationId: string,
  state: OrganizationRow['payment_state'],
) => (await setState.run(tx, { organizationId, state })) > 0

/** Returns the stored id. */
export const adoptPaymentCustomer = async (tx: Tx, organizationId: string, customerId: string) =>
  (await adoptCustomer.one(tx, { organizationId, customerId }))!.payment_customer_id

/** Starts a read from the provider and returns its number. */
export const beginProviderSync = async (db: Queryable, organizationId: string): Promise<number> =>
  (await beginSync.one(db, { organizationId }))!.begun

/** Returns false if a later read has already been applied. Blocks other reads until the transaction ends. */
export const applyProviderSync = async (tx: Tx, organizationId: string, ticket: number) =>
  (await applySync.run(tx, { organizationId, ticket })) > 0

export const countBilled = async (db: Queryable, organizationId: string) =>
  (await billed.one(db, { organizationId }))!

export const listExpiredCards = async (db: Queryable) =>
  (await expired.all(db)).map((row) => row.organization_id)

/** Returns whether the event has already been handled. */
export const isProviderEventKnown = async (db: Queryable, id: string) =>
  (await knowsEvent.one(db, { id }))!.is_known
