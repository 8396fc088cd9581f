import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

export interface DemoRow {
  organization_id: string
  project_id: string
  user_id: string
}

const hasOrganizations = statement<{ has_any: boolean }>(
  'organization_has_any',
  'SELECT EXISTS (SELECT FROM organizations) AS has_any',
)

/** Finds the owner with this e-mail address and the project of this name, in the same organization. */
export const findDemo = statement<DemoRow, { email: string; projectName: string }>(
  'demo_find',
  `SELECT m.organization_id, p.id AS project_id, u.id AS user_id
   FROM users u JOIN memberships m ON m.user_id = u.id AND m.role = 'owner'
   JOIN projects p ON p.organization_id = m.organization_id AND p.deleted_at IS NULL AND p.name = :projectName
   WHERE u.email = :email AND u.password_hash IS NOT NULL ORDER BY p.id LIMIT 1`,
).oneBy('email', 'projectName')

const activatePayment = statement<never, { organizationId: string }>(
  'organization_activate_payment',
  `UPDATE organizations SET payment_state = 'active', payment_customer_id = 'demo' WHERE id = :organizationId`,
)

// Payments with this test card always succeed.
const addPaymentMethod = statement<never, { organizationId: string }>(
  'demo_payment_method',
  `INSERT INTO payment_methods (organization_id, provider, reference, brand, last4, expires_month, expires_year)
   VALUES (:organizationId, 'builtin', 'test-works', 'Visa', '4242', 12, 2099) ON CONFLICT DO NOTHING`,
)

/** Revokes keys of a project, or operator keys if `projectId` is null. */
export const revokeKeysNamed = statement<never, { name: string; projectId: string | null }, Tx>(
  'access_keys_revoke_by_name',
  `UPDATE access_keys SET revoked_at = slipway_now()
   WHERE name = :name AND project_id IS NOT DISTINCT FROM :projectId::uuid AND organization_id IS NULL
     AND revoked_at IS NULL`,
).runBy('name', 'projectId')

const needsSetup = statement<{ is_needed: boolean }>(
  'setup_code_is_needed',
  `SELECT NOT EXISTS (SELECT FROM users WHERE is_operator)
      AND NOT EXISTS (SELECT FROM access_keys WHERE kind = 'operator' AND revoked_at IS NULL)
      AND NOT EXISTS (SELECT FROM one_time_codes
                      WHERE purpose = 'setup' AND used_at IS NULL AND expires_at > sign_in_now()) AS is_needed`,
)

export const isEmptyStore = async (db: Queryable): Promise<boolean> =>
  !(await hasOrganizations.one(db))!.has_any

export async function activateDemoPayment(tx: Tx, organizationId: string): Promise<void> {
  await activatePayment.run(tx, { organizationId })
  await addPaymentMethod.run(tx, { organizationId })
}

/** Returns whether there is neither an operator nor a valid code to become one. */
export const isSetupNeeded = async (db: Queryable): Promise<boolean> => (await needsSetup.one(db))!.is_needed
