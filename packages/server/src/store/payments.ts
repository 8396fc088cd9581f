import { type Queryable, statement, type Tx } from './database.ts'
import type { OrganizationRow } from './organizations.ts'

export interface PaymentMethodRow {
  organization_id: string
  provider: 'builtin' | 'stripe'
  reference: string
  brand: string
  last4: string
  expires_month: number
  expires_year: number
}

const findMethod = statement<PaymentMethodRow, [string]>(
  'payment_method_find',
  'SELECT * FROM payment_methods WHERE organization_id = $1',
)

const putMethod = statement<never, [string, string, string, string, string, number, number]>(
  'payment_method_put',
  `INSERT INTO payment_methods (organization_id, provider, reference, brand, last4, expires_month, expires_year)
   VALUES ($1, $2, $3, $4, $5, $6, $7)
   ON CONFLICT (organization_id) DO UPDATE SET provider = excluded.provider, reference = excluded.reference,
     brand = excluded.brand, last4 = excluded.last4, expires_month = excluded.expires_month,
     expires_year = excluded.expires_year, created_at = slipway_now()`,
)

const deleteMethod = statement<never, [string]>(
  'payment_method_delete',
  'DELETE FROM payment_methods WHERE organization_id = $1',
)

const setState = statement<never, [string, string]>(
  'payment_state_set',
  'UPDATE organizations SET payment_state = $2 WHERE id = $1 AND payment_state <> $2',
)

const setCustomer = statement<never, [string, string]>(
  'payment_customer_set',
  `UPDATE organizations SET payment_customer_id = $2 WHERE id = $1 AND payment_customer_id = ''`,
)

const byCustomer = statement<OrganizationRow, [string]>(
  'organization_by_customer',
  'SELECT * FROM organizations WHERE payment_customer_id = $1 FOR NO KEY UPDATE',
)

// What would have to be paid for and could not be any more. A VM that is shut off costs nothing.
const running = statement<{ vms: number; disks: number }, [string]>(
  'payment_running',
  `SELECT (SELECT count(*) FROM vms v JOIN projects p ON p.id = v.project_id
           WHERE p.organization_id = $1 AND v.state <> 'STATE_SHUTOFF') AS vms,
          (SELECT count(*) FROM disks d JOIN projects p ON p.id = d.project_id WHERE p.organization_id = $1) AS disks`,
)

// Good to the end of the month on the card.
const expired = statement<{ organization_id: string }>(
  'payment_method_expired',
  `SELECT m.organization_id FROM payment_methods m JOIN organizations o ON o.id = m.organization_id
   WHERE m.provider = 'builtin' AND o.payment_state = 'active'
     AND make_date(m.expires_year, m.expires_month, 1) + interval '1 month' <= slipway_now() AT TIME ZONE 'UTC'`,
)

const rememberEvent = statement<{ id: string }, [string]>(
  'provider_event_remember',
  'INSERT INTO provider_events (id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id',
)

const forgetOld = statement<never, []>(
  'provider_event_prune',
  `DELETE FROM provider_events WHERE received_at < slipway_now() - interval '60 days'`,
)

export const findPaymentMethod = (db: Queryable, organizationId: string) => findMethod.one(db, organizationId)

export const putPaymentMethod = (tx: Tx, method: PaymentMethodRow) =>
  putMethod.run(
    tx,
    method.organization_id,
    method.provider,
    method.reference,
    method.brand,
    method.last4,
    method.expires_month,
    method.expires_year,
  )

export const deletePaymentMethod = (tx: Tx, organizationId: string) => deleteMethod.run(tx, organizationId)

/** Whether it changed. */
export const setPaymentState = async (
  tx: Tx,
  organizationId: string,
  state: OrganizationRow['payment_state'],
) => (await setState.run(tx, organizationId, state)) > 0

/** Kept for good once it is known. */
export const setPaymentCustomer = (tx: Tx, organizationId: string, customerId: string) =>
  setCustomer.run(tx, organizationId, customerId)

export const lockOrganizationOfCustomer = (tx: Tx, customerId: string) => byCustomer.one(tx, customerId)

export const countRunning = async (db: Queryable, organizationId: string) =>
  (await running.one(db, organizationId))!

export const listExpiredCards = async (db: Queryable) =>
  (await expired.all(db)).map((row) => row.organization_id)

/** False when it was dealt with before. */
export const rememberProviderEvent = async (tx: Tx, id: string) =>
  (await rememberEvent.one(tx, id)) !== undefined

export const pruneProviderEvents = (db: Queryable) => forgetOld.run(db)
