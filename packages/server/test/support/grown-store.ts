import { query } from '@slipway/testing/database.ts'

/**
 * The number of rows in tables that grow with usage or age, after a year of 1 million VMs. Tables that are not listed
 * stay small: locations, images, prices, leases, addresses held for seconds, tables of one row.
 */
export const grownTables: Record<string, number> = {
  organizations: 10_000,
  users: 50_000,
  memberships: 50_000,
  token_families: 500_000,
  access_tokens: 500_000,
  refresh_tokens: 2_000_000,
  one_time_codes: 50_000,
  projects: 20_000,
  access_keys: 100_000,
  ssh_keys: 200_000,
  instance_templates: 200_000,
  instance_groups: 100_000,
  captures: 500_000,
  simulated_captures: 500_000,
  password_failures: 100_000,
  known_addresses: 100_000,
  idempotency_keys: 1_000_000,
  family_operations: 1_000_000,
  quotas: 160_000,
  organization_quotas: 80_000,
  hosts: 20_000,
  host_reports: 20_000,
  gpus: 160_000,
  networks: 40_000,
  subnets: 120_000,
  public_addresses: 1_000_000,
  carried_ranges: 10_000,
  firewall_rules: 200_000,
  firewall_rule_names: 200_000,
  vms: 1_000_000,
  disks: 1_000_000,
  disk_attachments: 1_000_000,
  operations: 10_000_000,
  operation_queue: 100_000,
  events: 40_000_000,
  usage_intervals: 10_000_000,
  usage_days: 20_000_000,
  usage_resource_days: 300_000_000,
  invoices: 120_000,
  invoice_lines: 1_000_000,
  project_spending: 20_000,
  budgets: 20_000,
  budget_alerts: 200_000,
  billing_sessions: 10_000,
  payment_methods: 10_000,
  provider_events: 1_000_000,
  provider_syncs: 10_000,
  meter_reports: 1_000_000,
  webhooks: 20_000,
  webhook_secrets: 20_000,
  webhook_deliveries: 40_000_000,
  reservations: 20_000,
  quota_requests: 100_000,
  capacity_requests: 1_000_000,
  capacity_places: 10_000,
  capacity_turns: 10_000,
  vm_samples: 100_000_000,
  vm_sample_chunks: 400_000_000,
  vm_guests: 1_000_000,
  gpu_faults: 10_000_000,
  simulated_xids: 100_000,
  simulated_hosts: 20_000,
  simulated_vms: 1_000_000,
  simulated_gpu_resets: 160_000,
  simulated_disks: 1_000_000,
}

/**
 * Thousands of real rows, so that values are distributed as in production: they belong to 100 projects and 400 hosts,
 * and nearly every operation, delivery and interval has ended. `p` is the number of a project, `h` that of a host.
 */
const rows = `
  CREATE FUNCTION id_of(kind text, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
    $$ SELECT md5(kind || n)::uuid $$;
  INSERT INTO locations (name, region, zone, engine, storage, position)
    SELECT 'place-' || n, 'place', n::text, 'simulated', 'shared', n FROM generate_series(1, 10) n;
  INSERT INTO organizations (id, name, payment_customer_id) SELECT id_of('org', n), 'org ' || n, 'cus_' || n FROM generate_series(1, 100) n;
  INSERT INTO users (id, email) SELECT id_of('user', n), n || '@example.com' FROM generate_series(1, 500) n;
  INSERT INTO memberships (organization_id, user_id, role)
    SELECT id_of('org', n % 100 + 1), id_of('user', n), 'owner' FROM generate_series(1, 500) n;
  INSERT INTO token_families (id, user_id) SELECT id_of('family', n), id_of('user', n % 500 + 1) FROM generate_series(1, 2000) n;
  INSERT INTO access_tokens (token_hash, family_id, expires_at)
    SELECT sha256(n::text::bytea), id_of('family', n), now() + n * interval '1 second' FROM generate_series(1, 2000) n;
  INSERT INTO refresh_tokens (token_hash, family_id, expires_at)
    SELECT sha256(n::text::bytea), id_of('family', n), now() + n * interval '1 minute' FROM generate_series(1, 2000) n;
  INSERT INTO one_time_codes (code_hash, purpose, user_id, expires_at)
    SELECT sha256(n::text::bytea), 'reset', id_of('user', n), now() + n * interval '1 minute' FROM generate_series(1, 500) n;
  INSERT INTO projects (id, organization_id, name)
    SELECT id_of('project', n), id_of('org', n), 'project ' || n FROM generate_series(1, 100) n;
  INSERT INTO access_keys (id, kind, project_id, name, role, prefix, secret_hash)
    SELECT uuidv7(), 'project', id_of('project', n % 100 + 1), 'key', 'write', 'sk', sha256(n::text::bytea) FROM generate_series(1, 1000) n;
  INSERT INTO ssh_keys (id, project_id, name, public_key, type, fingerprint)
    SELECT uuidv7(), id_of('project', n % 100 + 1), 'key ' || n, 'ssh', 'ssh', 'SHA256:' FROM generate_series(1, 1000) n;
  INSERT INTO instance_templates (id, project_id, name, version, body)
    SELECT uuidv7(), id_of('project', n % 100 + 1), 'template ' || n / 500, n, '{}' FROM generate_series(1, 1000) n;
  INSERT INTO instance_groups (id, project_id, name, location, desired_count, placement_policy, on_member_loss, state)
    SELECT uuidv7(), id_of('project', n % 100 + 1), 'group ' || n, 'place-' || n % 10 + 1, 0, 'unspecified', 'none', 'HEALTHY'
    FROM generate_series(1, 1000) n;
  INSERT INTO captures (id, project_id, kind, name, source_kind, source_id, size, size_gib, block_size, location, state,
                        stored_bytes, consistency, engine_source)
    SELECT uuidv7(), id_of('project', n % 100 + 1), CASE WHEN n % 2 = 0 THEN 'image' ELSE 'snapshot' END, 'copy ' || n, 'disk',
           id_of('disk', n), '1GiB', 1, 512, 'place-' || n % 10 + 1, 'available', 1, 'off', '{}' FROM generate_series(1, 1000) n;
  INSERT INTO password_failures (email, address, failed_at)
    SELECT n || '@example.com', '198.51.100.1', now() - n * interval '1 minute' FROM generate_series(1, 1000) n;
  INSERT INTO known_addresses (user_id, address, signed_in_at)
    SELECT id_of('user', n % 500 + 1), '198.51.100.' || n, now() - n * interval '1 minute' FROM generate_series(1, 1000) n;
  INSERT INTO idempotency_keys (caller, key_hash, request_hash, answer_sealed, created_at)
    SELECT 'key ' || n % 100, sha256(n::text::bytea), '', '', now() - n * interval '40 seconds' FROM generate_series(1, 2000) n;
  INSERT INTO family_operations (id, project_id, request_hash, operation, created_at)
    SELECT uuidv7(), id_of('project', n % 100 + 1), sha256(n::text::bytea), '{}', now() - n * interval '40 seconds'
    FROM generate_series(1, 2000) n;
  INSERT INTO quotas (project_id, name, max)
    SELECT id_of('project', p), 'quota ' || n, 10 FROM generate_series(1, 100) p, generate_series(1, 8) n;

  INSERT INTO organization_quotas (organization_id, name, max)
    SELECT id_of('org', o), 'quota ' || n, 10 FROM generate_series(1, 100) o, generate_series(1, 8) n;

  INSERT INTO hosts (id, name, location, family, state, usable_gpus, free_gpus, max_node_free, claimed_gpus)
    SELECT id_of('host', n), 'host-' || n, 'place-' || n % 10 + 1, 'a100', CASE WHEN n % 100 = 0 THEN 'down' ELSE 'up' END, 8,
           n % 9, n % 5, 8 - n % 9 FROM generate_series(1, 400) n;
  INSERT INTO host_reports (host_id, reported_at, fingerprint) SELECT id, now(), name FROM hosts;
  INSERT INTO gpus (id, host_id, model, pci_address, state, vm_id, quarantined_at)
    SELECT gen_random_uuid(), id_of('host', h), 'A100', 'pci ' || n,
           CASE WHEN h = n THEN 'quarantined' WHEN n < 6 THEN 'claimed' ELSE 'free' END,
           CASE WHEN h <> n AND n < 6 THEN id_of('vm', h * 5 + n - 5) END, CASE WHEN h = n THEN now() END
    FROM generate_series(1, 400) h, generate_series(1, 8) n;

  INSERT INTO reservations (id, organization_id, billing_project_id, type, family, unit_gpus, location, quantity, term,
                            collects_at, usd_per_gpu_hour, ended_at, due_at)
    SELECT id_of('reservation', n), id_of('org', n % 100 + 1), id_of('project', n % 100 + 1), 'a100.8x', 'a100', 8,
           'place-' || n % 10 + 1, 8, tstzrange(now() - n * interval '1 day', now() - (n - 100) * interval '1 day'), now(), 1,
           CASE WHEN n > 100 THEN now() END, CASE WHEN n <= 100 THEN now() + n * interval '1 hour' END
    FROM generate_series(1, 2000) n;
  INSERT INTO capacity_lanes (location, family) SELECT 'place-' || n, 'a100' FROM generate_series(1, 10) n;
  INSERT INTO capacity_requests (id, organization_id, project_id, state, on_available, hold_seconds, body, family, gpus, until,
                                 actor, request_id, due_at, updated_at, granted_at, first_latest_at, operation_id)
    SELECT id_of('request', n), id_of('org', n % 100 + 1), id_of('project', n % 100 + 1),
           CASE WHEN n % 10 = 0 THEN 'waiting' ELSE 'fulfilled' END, 'create', 900, '{}', 'a100', n % 4 + 1, now() + interval '7 days',
           '', '', CASE WHEN n % 10 = 0 THEN now() + n * interval '1 minute' END, now() - n * interval '1 hour', now(), now(),
           CASE WHEN n % 10 > 0 THEN id_of('operation', n) END
    FROM generate_series(1, 10000) n;
  INSERT INTO capacity_places (request_id, location, family, turn, gpus, vms, host_id)
    SELECT id_of('request', n), 'place-' || n / 10 % 10 + 1, 'a100', n, n % 4 + 1, CASE WHEN n % 70 = 0 THEN 4 ELSE 1 END,
           CASE WHEN n % 50 = 0 THEN id_of('host', n % 400 + 1) END
    FROM generate_series(10, 10000, 10) n;
  INSERT INTO capacity_turns (organization_id, location, family, last_turn)
    SELECT id_of('org', o), 'place-' || l, 'a100', o FROM generate_series(1, 100) o, generate_series(1, 10) l;

  INSERT INTO networks (id, project_id, name, cidr)
    SELECT id_of('network', n), id_of('project', n % 100 + 1), 'network ' || n,
           network(set_masklen('10.0.0.0'::inet + n * 65536, 16)) FROM generate_series(1, 200) n;
  INSERT INTO subnets (id, project_id, network_id, name, cidr, location)
    SELECT id_of('subnet', n), id_of('project', n % 200 % 100 + 1), id_of('network', n % 200 + 1), 'subnet ' || n,
           network(set_masklen('10.0.0.0'::inet + n * 4096, 20)), 'place-' || n % 10 + 1 FROM generate_series(1, 600) n;
  INSERT INTO carried_ranges (subnet_id, location, cidr) SELECT id, location, cidr FROM subnets;
  INSERT INTO firewall_rules (id, project_id, network_id, name, direction, action, state, sources, source_ports, destinations,
                              destination_ports, protocols)
    SELECT uuidv7(), id_of('project', n % 200 % 100 + 1), id_of('network', n % 200 + 1), 'rule ' || n, 'ingress', 'allow',
           'active', '[]', '{}', '[]', '{}', '{tcp}' FROM generate_series(1, 1000) n;

  INSERT INTO firewall_rule_names (project_id, name, rule_id) SELECT project_id, name, id FROM firewall_rules;

  INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, state, host_id, image, os_disk_id,
                   interface_id, network_id, subnet_id, mac_address, private_address, public_address, public_address_id,
                   expires_at, firewall_wanted, firewall_applied, deleted_at)
    SELECT id_of('vm', n), id_of('project', n % 100 + 1), 'vm-' || n, 'a100.' || n % 4, 'a100', 1, 'place-' || n % 10 + 1,
           CASE WHEN n % 1000 = 0 THEN 'STATE_UNREACHABLE' WHEN n % 5 = 0 THEN 'STATE_SHUTOFF' ELSE 'STATE_RUNNING' END,
           id_of('host', (n - 1) / 5 + 1), 'image-' || n % 5, gen_random_uuid(), gen_random_uuid(),
           id_of('network', n % 200 + 1), id_of('subnet', n % 600 + 1), 'mac ' || n, '10.0.0.0'::inet + n,
           '198.18.0.0'::inet + n, gen_random_uuid(), CASE WHEN n % 10 = 0 THEN now() + n * interval '1 hour' END,
           CASE WHEN n % 1000 = 1 THEN 3 ELSE 2 END, 2, CASE WHEN n % 1000 = 2 THEN now() END
    FROM generate_series(1, 2000) n;
  INSERT INTO public_addresses (address, id, project_id, location, name, created_at)
    SELECT '198.19.0.0'::inet + n, uuidv7(), id_of('project', n % 100 + 1), 'place-' || n % 10 + 1, 'address ' || n, now()
    FROM generate_series(1, 500) n;
  INSERT INTO disks (id, project_id, name, type, size, size_gib, location, block_size, serial_number, state)
    SELECT id_of('disk', n), id_of('project', n % 100 + 1), 'disk-' || n, 'persistent-ssd', '1GiB', 1, 'place-' || n % 10 + 1,
           512, 'serial', 'available' FROM generate_series(1, 2000) n;
  INSERT INTO disk_attachments (vm_id, disk_id, mode, is_exclusive)
    SELECT id_of('vm', n), id_of('disk', n), 'read-write', true FROM generate_series(1, 2000) n;

  INSERT INTO operations (id, project_id, kind, name, resource_type, resource_id, generation, request, state, actor, request_id,
                          started_at, completed_at, is_stuck)
    SELECT uuidv7((n - 20000) * interval '5 minutes'), id_of('project', n % 100 + 1), 'vm-create',
           CASE n % 4 WHEN 0 THEN 'DELETE' ELSE 'CREATE' END, 'vm', id_of('vm', n % 5000), 1, '{}',
           CASE WHEN n > 19990 THEN 'IN_PROGRESS' WHEN n % 100 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, 'key ' || n % 500, '',
           now() + (n - 20000) * interval '5 minutes',
           CASE WHEN n <= 19990 THEN now() + (n - 20000) * interval '5 minutes' END, n = 20000
    FROM generate_series(1, 20000) n;
  INSERT INTO operation_queue (operation_id, project_id, resource_id, is_deletion, location, run_at)
    SELECT uuidv7(), id_of('project', n % 100 + 1), id_of('vm', n), n % 4 = 0, 'place-' || n % 10 + 1,
           now() + (n - 20) * interval '1 second' FROM generate_series(1, 2000) n;
  INSERT INTO events (seq, id, position, organization_id, project_id, type, resource_type, resource_id, actor, request_id, created_at)
    SELECT n, gen_random_uuid(), n, id_of('org', n % 100 + 1),
           CASE WHEN n % 40 > 0 THEN id_of('project', n % 100 + 1) END, 'type-' || n % 60, 'vm', id_of('vm', n % 10000)::text, 'key ' || n % 500, '', now() + (n - 40000) * interval '3 minutes'
    FROM generate_series(1, 40000) n;

  INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, product_name, quantity, period)
    SELECT id_of('project', n % 100 + 1), 'place-' || n % 10 + 1, 'vm', id_of('vm', n % 1000 + 1), 'a100', 1,
           tstzrange(now() - (n / 1000 + 1) * interval '1 day', CASE WHEN n >= 1000 THEN now() - (n / 1000) * interval '1 day' END)
    FROM generate_series(1, 10000) n;
  INSERT INTO usage_resource_days (project_id, day, resource_id, location, resource_type, product_name, resource_name,
                                   labels, quantity_ms)
    SELECT id_of('project', n % 100 + 1), current_date - n / 1000, id_of('vm', n % 1000 + 1), 'place-1', 'vm', 'a100', 'vm',
           '{}', 1 FROM generate_series(1000, 20000) n;
  INSERT INTO usage_days (day, project_id, location, resource_type, product_name, quantity_ms)
    SELECT current_date - d, id_of('project', p), 'place-1', 'vm', 'a100', 1
    FROM generate_series(1, 100) d, generate_series(1, 100) p;
  INSERT INTO usage_days_closed (day) SELECT current_date - d FROM generate_series(1, 100) d;
  INSERT INTO invoices (id, organization_id, month, state, usd_cents, paid_at)
    SELECT id_of('invoice', o * 100 + m), id_of('org', o), date_trunc('month', now()) - m * interval '1 month', 'paid', 1, now()
    FROM generate_series(1, 100) o, generate_series(1, 12) m;
  INSERT INTO invoice_lines (invoice_id, project_id, product_name, unit, quantity_ms, usd_cents)
    SELECT i.id, id_of('project', p), 'a100', 'vm_hour', 1, 1 FROM invoices i, generate_series(1, 5) p;
  INSERT INTO project_spending (project_id, at) SELECT id, now() FROM projects;
  INSERT INTO budgets (project_id, monthly_usd) SELECT id, 100 FROM projects;
  INSERT INTO budget_alerts (project_id, month, threshold_percent)
    SELECT id, date_trunc('month', now()) - m * interval '1 month', 80 FROM projects, generate_series(1, 10) m;
  INSERT INTO quota_requests (id, organization_id, name, max, reason, state, requested_by, decided_at)
    SELECT id_of('quota-request', o * 100 + n), id_of('org', o), 'vms', 100, 'growth', CASE n WHEN 1 THEN 'open' ELSE 'approved' END,
           'user', CASE WHEN n > 1 THEN now() - n * interval '1 day' END
    FROM generate_series(1, 100) o, generate_series(1, 20) n;
  INSERT INTO billing_sessions (token_hash, organization_id, user_id, token_family_id, expires_at)
    SELECT sha256(n::text::bytea), id_of('org', n % 100 + 1), id_of('user', n), id_of('family', n), now() FROM generate_series(1, 500) n;
  INSERT INTO payment_methods (organization_id, provider, reference, brand, last4, expires_month, expires_year)
    SELECT id, 'builtin', 'x', 'Visa', '4242', 12, 2099 FROM organizations;
  INSERT INTO provider_events (id, received_at) SELECT n, now() - n * interval '30 minutes' FROM generate_series(1, 2000) n;
  INSERT INTO provider_syncs (organization_id, begun) SELECT id, 1 FROM organizations;
  INSERT INTO meter_reports (organization_id, day, usd_cents, state)
    SELECT o.id, current_date - d, 1, CASE d WHEN 1 THEN 'pending' ELSE 'sent' END FROM organizations o, generate_series(1, 50) d;

  INSERT INTO webhooks (id, project_id, url, event_types, since_position)
    SELECT id_of('webhook', n), id_of('project', n), 'https://example.com', '{}', 0 FROM generate_series(1, 100) n;
  INSERT INTO webhook_secrets (webhook_id, sealed) SELECT id, 'sealed' FROM webhooks;
  INSERT INTO webhook_deliveries (id, webhook_id, event_id, event_type, resource_id, state, next_attempt_at, completed_at)
    SELECT uuidv7(), id_of('webhook', n % 100 + 1), e.id, 'type', e.resource_id,
           CASE WHEN n > 19990 THEN 'pending' ELSE 'delivered' END, CASE WHEN n > 19990 THEN now() END,
           CASE WHEN n <= 19990 THEN now() END
    FROM (SELECT *, row_number() OVER (ORDER BY seq) AS n FROM events LIMIT 20000) e;

  INSERT INTO vm_samples (vm_id, at, data)
    SELECT id_of('vm', n % 1000 + 1), now() - (n / 1000) * interval '1 minute', '{}' FROM generate_series(1, 20000) n;
  INSERT INTO vm_sample_chunks (vm_id, hour, step, data)
    SELECT id_of('vm', n % 1000 + 1), now() - (n / 1000) * interval '1 hour', 60 + 240 * (n % 2), '{}'
    FROM generate_series(1, 20000) n;
  INSERT INTO vm_guests (vm_id) SELECT id FROM vms;
  INSERT INTO gpu_faults (gpu_id, vm_id, xid, source, at)
    SELECT id, vm_id, 31, 'guest', now() - n * interval '1 hour' FROM gpus CROSS JOIN generate_series(1, 3) n;

  INSERT INTO simulated_xids (location, host, pci_address, vm_id, gpu_index, xid, source, at)
    SELECT 'place-' || n % 10 + 1, 'host-' || (n - 1) / 5 + 1, '0000:10:00.0', id_of('vm', n), 0, 31, 'guest', now()
    FROM generate_series(1, 1000) n;

  INSERT INTO simulated_hosts (location, name, model, gpu_count) SELECT location, name, 'A100', 8 FROM hosts;
  INSERT INTO simulated_vms (id, location, host, generation, is_removed, removed_at, spec)
    SELECT id_of('vm', n), 'place-' || n % 10 + 1, 'host-' || (n - 1) / 5 + 1, 1, n % 10 = 0,
           CASE WHEN n % 10 = 0 THEN now() - n * interval '1 minute' END, '{}' FROM generate_series(1, 2000) n;
  INSERT INTO simulated_gpu_resets (location, host, pci_address, clean_at)
    SELECT location, name, 'pci ' || n, now() FROM hosts, generate_series(1, 4) n;
  INSERT INTO simulated_captures (id, location, generation, stored_bytes, consistency)
    SELECT id_of('capture', n), 'place-' || n % 10 + 1, 1, 1, 'off' FROM generate_series(1, 1000) n;
  INSERT INTO simulated_disks (id, location, generation, size_gib)
    SELECT id_of('disk', n), 'place-' || n % 10 + 1, 1, 1 FROM generate_series(1, 2000) n;`

/** The tables that are as large for an operator with a few large tenants: VMs and the rows that belong to them. */
export const tablesOfFewTenants: Record<string, number> = Object.fromEntries(
  Object.entries(grownTables).filter(([table]) =>
    /^(hosts|host_reports|gpus|carried_ranges|vms|disks|disk_attachments|operations|events|simulated_\w+)$|^usage_|^webhook_deliveries$/.test(
      table,
    ),
  ),
)

/**
 * Fills an empty database and makes PostgreSQL plan as if every table had grown. A hundred projects represent two
 * thousand.
 */
export async function growStore(url: string): Promise<void> {
  // Rows are inserted without triggers and foreign keys, because only the distribution of the values matters here.
  await query(url, `SET session_replication_role = replica; ${rows}`)
  await planAs(url, grownTables, 2000)
}

/** Makes PostgreSQL plan for a grown database in which a dozen organizations own everything. */
export async function planForFewTenants(url: string): Promise<void> {
  const tables = Object.keys(grownTables).filter((table) => !tablesOfFewTenants[table])
  await planAs(url, { ...tablesOfFewTenants, ...Object.fromEntries(tables.map((table) => [table, 12])) }, 20)
}

/**
 * Makes PostgreSQL plan as if the tables had these numbers of rows. PostgreSQL multiplies the rows per page in its
 * statistics by the actual number of pages, so this sets the rows per page, for tables and indexes alike.
 */
async function planAs(url: string, counts: Record<string, number>, projects: number): Promise<void> {
  const tables = Object.keys(counts)
  await query(url, tables.map((table) => `ALTER TABLE ${table} SET (autovacuum_enabled = off);`).join(''))
  const ofProjects = await query<{ name: string }>(
    url,
    `SELECT table_name AS name FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name = 'project_id' AND table_name = ANY ($1)`,
    [tables],
  )
  for (const { name } of ofProjects)
    await query(url, `ALTER TABLE ${name} ALTER project_id SET (n_distinct = ${projects})`)
  await query(url, 'VACUUM ANALYZE')
  await query(
    url,
    `UPDATE pg_class c SET reltuples = c.reltuples * factor
     FROM (SELECT t.oid, wanted.rows / t.reltuples AS factor
           FROM unnest($1::text[], $2::float8[]) AS wanted (name, rows) JOIN pg_class t ON t.oid = wanted.name::regclass) grown
     LEFT JOIN pg_index i ON i.indrelid = grown.oid
     WHERE c.oid IN (grown.oid, i.indexrelid)`,
    [tables, Object.values(counts)],
  )
}
