import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** Tables that a reset keeps, at least partly. All other tables are emptied. */
const keptTables = [
  'access_keys',
  'access_tokens',
  'clock',
  'event_counter',
  'gpus',
  'host_reports',
  'hosts',
  'images',
  'known_addresses',
  'locations',
  'mail_cursor',
  'memberships',
  'organization_quotas',
  'organizations',
  'payment_methods',
  'prices',
  'projects',
  'quotas',
  'readiness',
  'recovery_codes',
  'refresh_tokens',
  'secret_key',
  'simulated_hosts',
  'token_families',
  'user_identities',
  'users',
  'webhook_fan_out',
]

const tables = statement<{ name: string }, { kept: string[] }>(
  'dev_reset_tables',
  `SELECT quote_ident(tablename) AS name FROM pg_tables
   WHERE schemaname = 'public' AND tablename <> ALL (:kept::text[]) AND tablename NOT LIKE 'schema%'`,
)

/** Deletes the tenants other than the demo. The demo's credentials must keep working. */
const others = `
  DELETE FROM access_tokens WHERE family_id IN (SELECT id FROM token_families WHERE user_id NOT IN (SELECT id FROM kept_users));
  DELETE FROM refresh_tokens WHERE family_id IN (SELECT id FROM token_families WHERE user_id NOT IN (SELECT id FROM kept_users));
  DELETE FROM token_families WHERE user_id NOT IN (SELECT id FROM kept_users);
  DELETE FROM user_identities WHERE user_id NOT IN (SELECT id FROM kept_users);
  DELETE FROM recovery_codes WHERE user_id NOT IN (SELECT id FROM kept_users);
  DELETE FROM known_addresses WHERE user_id NOT IN (SELECT id FROM kept_users);
  DELETE FROM access_keys WHERE kind <> 'operator' AND project_id IS DISTINCT FROM '$project' OR revoked_at IS NOT NULL
    OR parent_id IS NOT NULL OR created_by NOT IN (SELECT id FROM kept_users);
  DELETE FROM memberships WHERE organization_id <> '$organization' OR user_id <> '$user';
  DELETE FROM users WHERE id NOT IN (SELECT id FROM kept_users);
  DELETE FROM quotas WHERE project_id <> '$project';
  DELETE FROM projects WHERE id <> '$project';
  DELETE FROM payment_methods WHERE organization_id <> '$organization';
  DELETE FROM organization_quotas WHERE organization_id <> '$organization';
  DELETE FROM organizations WHERE id <> '$organization';
  DELETE FROM prices WHERE valid_from > sign_in_now();`.replaceAll(
  'SELECT id FROM kept_users',
  `SELECT id FROM users WHERE id = '$user' OR is_operator`,
)

/**
 * Resets the parts of the kept tables that change while the service is used. Triggers recount the GPUs and
 * quotas.
 */
const resetKept = `
  UPDATE clock SET moved = '0', paused_at = NULL, rate = 1, rate_since = sign_in_now();
  UPDATE event_counter SET last_position = 0, pruned_position = 0;
  UPDATE webhook_fan_out SET position = 0;
  UPDATE mail_cursor SET position = 0 WHERE position IS NOT NULL;
  UPDATE organizations SET payment_state = 'active', payment_state_since = NULL, suspended_at = NULL, stops_vms = false,
    require_totp = false;
  UPDATE gpus SET state = 'free', vm_id = NULL, quarantined_at = NULL, is_held_back = false, held_for = NULL, held_kind = NULL,
      suspect_since = NULL, fault_count = 0, lost_at = NULL, host_xids = NULL
    WHERE state <> 'free' OR suspect_since IS NOT NULL OR fault_count > 0 OR lost_at IS NOT NULL OR host_xids IS NOT NULL;
  UPDATE quotas SET used = 0 WHERE used <> 0;
  UPDATE hosts SET state = 'up', is_schedulable = true, is_draining = false, forgotten_at = NULL
    WHERE state <> 'up' OR NOT is_schedulable OR is_draining OR forgotten_at IS NOT NULL;
  UPDATE host_reports SET reported_at = slipway_now();
  UPDATE locations SET engine_answered_at = slipway_now();
  UPDATE simulated_hosts SET is_lost = false WHERE is_lost;`

interface Demo {
  organization_id: string
  project_id: string
  user_id: string
}

/** Deletes everything but the catalogue, the fleet, and the demo organization with its people and credentials. */
export async function deleteAllButDemo(
  tx: Tx,
  { organization_id, project_id, user_id }: Demo,
): Promise<void> {
  const emptied = (await tables.all(tx, { kept: keptTables })).map(({ name }) => name)
  const pruned = others
    .replaceAll('$project', project_id)
    .replaceAll('$organization', organization_id)
    .replaceAll('$user', user_id)
  await tx.query({ text: `TRUNCATE ${emptied.join(', ')}; ${pruned} ${resetKept}` })
}
